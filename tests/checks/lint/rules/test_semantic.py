from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from bespeak.contract.policy import MethodPolicy
from bespeak.contract.semantic import CAPABILITIES

Check = Callable[..., list[str]]


@pytest.mark.requirement("API-6.2-1")
@pytest.mark.parametrize("text", ["", "  ", None])
def test_an_endpoint_has_a_description(check: Check, text: Any) -> None:
    assert check(description=text) == ["S401"]


@pytest.mark.requirement("API-7.1-2", "API-13.2-4")
@pytest.mark.parametrize("field", ["intent", "actor", "outcome"])
def test_the_semantic_block_says_intent_actor_and_outcome(check: Check, field: str) -> None:
    assert check(semantic={field: " "}) == ["S401"]


@pytest.mark.requirement("API-7.1-1")
@pytest.mark.parametrize("actor", ["merchant", "patient", "night auditor", "代理"])
def test_an_unusual_actor_is_fine(check: Check, actor: str) -> None:
    assert check(semantic={"actor": actor}) == []


@pytest.mark.requirement("API-7.1-3")
def test_a_capability_is_one_of_the_nine(check: Check) -> None:
    assert len(CAPABILITIES) == 9
    for capability in CAPABILITIES:
        assert check(semantic={"capability": capability}) == []
    assert check(semantic={"capability": "TRANSACT"}) == ["S402"]


def test_an_empty_capability_is_inherited_where_there_is_something_to_inherit(check: Check) -> None:
    assert check(semantic={"capability": ""}) == []
    custom = MethodPolicy(custom=("FROBNICATE",))
    assert check(method="FROBNICATE", policy=custom, semantic={"capability": ""}) == ["S402"]


@pytest.mark.requirement("API-7.1-4")
@pytest.mark.parametrize("confidence", [0, 0.0, 0.5, 1, 1.0])
def test_a_confidence_lies_within_zero_and_one(check: Check, confidence: float) -> None:
    assert check(semantic={"confidence": confidence}) == []


@pytest.mark.requirement("API-7.1-4")
@pytest.mark.parametrize("confidence", [-0.1, 1.01, math.nan, math.inf, True, "0.5", None])
def test_any_other_confidence_is_refused(check: Check, confidence: Any) -> None:
    assert check(semantic={"confidence": confidence}) == ["S403"]


@pytest.mark.requirement("API-7.1-5")
def test_an_impact_is_one_of_three(check: Check) -> None:
    assert check(semantic={"impact": "reversible"}) == []
    assert check(semantic={"impact": "severe"}) == ["S404"]


@pytest.mark.requirement("API-7.1-6")
@pytest.mark.parametrize("value", [None, 0, "false"])
def test_is_idempotent_is_a_boolean(check: Check, value: Any) -> None:
    assert check(semantic={"is_idempotent": value}) == ["S405"]


def test_a_confidence_guidance_is_checked_where_there_is_one(check: Check) -> None:
    assert check(semantic={"confidence_guidance": 0.9}) == []
    assert check(semantic={"confidence_guidance": 9}) == ["S406"]
