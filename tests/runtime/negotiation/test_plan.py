"""Plans: what a composition publishes is derived from its steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.runtime.negotiation.plan import Plan


def plan(*steps: tuple[str, bool, float, str], quality: float = 1.0) -> Plan:
    made = []
    for number, (impact, idempotent, confidence, scope) in enumerate(steps):
        one = make_endpoint("QUERY", f"/thing{number}", echo)
        semantic = replace(one.semantic, impact=impact, is_idempotent=idempotent, confidence=confidence)
        made.append(replace(one, semantic=semantic, required_scopes=(scope,)))
    recipe = Recipe(name="r", steps=tuple(RecipeStep(method=one.method, path=one.path) for one in made))
    return Plan(recipe=recipe, endpoints=tuple(made), quality=quality)


READ = ("informational", True, 0.9, "a:read")
HOLD = ("reversible", True, 0.8, "b:write")
SEND = ("irreversible", False, 1.0, "a:read")


def test_the_worst_impact_of_the_steps_counts() -> None:
    assert [plan(READ).impact, plan(READ, HOLD).impact, plan(HOLD, SEND, READ).impact] == [
        *("informational", "reversible", "irreversible")
    ]


def test_scopes_are_the_union_and_confidence_the_product_of_the_steps() -> None:
    made = plan(READ, HOLD, quality=0.5)
    assert made.scopes == ("a:read", "b:write")
    assert made.confidence == pytest.approx(0.36)


def test_several_changing_steps_are_never_idempotent() -> None:
    assert [plan(READ, HOLD).is_idempotent, plan(HOLD, HOLD).is_idempotent, plan(READ, SEND).is_idempotent] == [
        *(True, False, False)
    ]


def test_only_a_plan_of_high_quality_is_certain() -> None:
    assert [plan(READ, quality=quality).is_certain for quality in (0.61, 0.62)] == [False, True]
