"""What a composition promises is not better than its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import compose, recipe, step
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.composition import check
from bespeak.contract.policy import Policies

WRITE = make_endpoint("BOOK", "/a", echo, impact="irreversible", scopes=("rooms:book",))
UNSAFE = replace(WRITE, semantic=replace(WRITE.semantic, is_idempotent=False))


def rules(called: Any, **fields: Any) -> list[str]:
    endpoint = compose("BOOK", "/c", "r", **fields)
    return [finding.rule for finding in check(endpoint, recipe(step("BOOK /a")), [called], Policies(), 1)]


def test_a_composition_that_says_what_its_steps_say_is_valid() -> None:
    assert rules(WRITE, impact="irreversible", scopes=("rooms:book", "rooms:more")) == []


@pytest.mark.requirement("API-12.1-7")
def test_scopes_of_steps_must_be_required() -> None:
    assert rules(WRITE, impact="irreversible", scopes=("rooms:read",)) == ["H745"]


def test_a_lower_impact_or_a_better_idempotency_is_refused() -> None:
    assert rules(WRITE, impact="reversible", scopes=("rooms:book",)) == ["H746"]
    assert rules(UNSAFE, impact="irreversible", scopes=("rooms:book",)) == ["H746"]
