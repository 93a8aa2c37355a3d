"""Which compositions can be served beside which endpoints."""

from __future__ import annotations

import pytest
from tests.compositions import compose, recipe, step
from tests.service import echo, make_endpoint

from bespeak.checks.lint.registration import check_compositions
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe

READ = make_endpoint("FETCH", "/n", echo)


def check(*recipes: Recipe, depth: int = 10) -> dict[str, list[str]]:
    composed = [compose("FIND", f"/{one.name}", one.name) for one in recipes]
    by_name = {one.name: one for one in recipes}
    found = check_compositions(composed, by_name, {READ.key: READ}, Policies(max_synthesis_depth=depth))
    return {str(endpoint): [one.message for one in findings] for endpoint, _, findings in found}


def test_a_step_without_an_endpoint_is_reported_with_a_near_one() -> None:
    found = check_compositions(
        [compose("FIND", "/a", "a")], {"a": recipe(step("FETCH /m"))}, {READ.key: READ}, Policies()
    )
    [(_, called, [finding])] = found
    assert (called, finding.rule, finding.help) == (None, "H740", "Did you mean FETCH /n?")


def test_a_composition_that_calls_itself_is_reported() -> None:
    found = check(recipe(step("FIND /a"), name="a"))
    assert found == {"FIND /a": ["FIND /a: its recipe 'a' calls it again"]}


def test_a_cycle_of_several_is_reported_for_each_and_for_those_that_lead_to_it() -> None:
    found = check(
        recipe(step("FIND /b"), name="a"),
        recipe(step("FETCH /n"), step("FIND /a"), name="b"),
        recipe(step("FIND /a"), name="c"),
        recipe(step("FETCH /n"), name="d"),
    )
    assert found["FIND /d"] == []
    assert found["FIND /a"] == ["FIND /a: its recipe 'a' calls it again by way of FIND /b"]
    assert found["FIND /b"] == ["FIND /b: its recipe 'b' calls it again by way of FIND /a"]
    assert found["FIND /c"] == ["FIND /c: step 1 of its recipe 'c' calls 'FIND /a', which this server does not serve"]


def test_steps_of_all_levels_are_counted() -> None:
    three = recipe(*(step("FETCH /n") for _ in range(3)), name="three")
    nine = recipe(*(step("FIND /three") for _ in range(3)), name="nine")
    assert check(three, nine, depth=9) == {"FIND /three": [], "FIND /nine": []}
    assert check(three, nine, depth=8)["FIND /nine"] == [
        "FIND /nine: its recipe 'nine' makes 9 calls, and 8 are allowed"
    ]


@pytest.mark.parametrize("depth", [1, 40])
def test_recipes_that_double_at_each_level_end_quickly(depth: int) -> None:
    recipes = [recipe(step("FETCH /n"), name="r0")]
    recipes += [recipe(*(step(f"FIND /r{n}") for _ in range(2)), name=f"r{n + 1}") for n in range(depth)]
    assert len(check(*recipes)) == depth + 1
