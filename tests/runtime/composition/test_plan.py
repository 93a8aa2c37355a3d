"""Plans: what is computed once for a recipe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import TEXT, compose, given, recipe, step
from tests.service import echo, make_endpoint

from bespeak.runtime.composition.plan import plan_composition
from bespeak.runtime.composition.step import JOURNALED

READ = make_endpoint("FETCH", "/a", echo)
WRITE = make_endpoint("BOOK", "/a", echo, impact="reversible")
SERVED = {READ.key: READ, WRITE.key: WRITE}
MADE = compose("BOOK", "/c", "r")


def test_neighbouring_steps_of_one_group_belong_together() -> None:
    steps = [step("FETCH /a", group=group) for group in ("x", "x", None, None, "x")]
    plan = plan_composition(MADE, recipe(*steps), SERVED)
    assert [[one.number for one in group] for group in plan.groups] == [[1, 2], [3], [4], [5]]


def test_what_is_read_before_the_last_change_is_journaled() -> None:
    calls = ("FETCH /a", "BOOK /a", "FETCH /a", "BOOK /a", "FETCH /a")
    plan = plan_composition(MADE, recipe(*(step(called) for called in calls)), SERVED)
    assert [group[0].flags for group in plan.groups] == [JOURNALED, JOURNALED, JOURNALED, 0, 0]
    assert [group[0].changes for group in plan.groups] == [False, True, False, True, False]


def test_the_path_of_a_step_has_the_values_of_its_input() -> None:
    room = replace(READ, path="/rooms/{rooms}/beds", input_schema={"properties": {"rooms": TEXT}})
    plan = plan_composition(
        MADE, recipe(step("FETCH /rooms/{rooms}/beds", take={"rooms": given("id")})), {room.key: room}
    )
    fill = plan.groups[0][0].fill
    assert fill({"rooms": "a/b é"}) == "/rooms/a%2Fb%20%C3%A9/beds"
    assert fill({"rooms": True}) == "/rooms/true/beds"


ONE = {"one": TEXT}
FLAT, NESTED = {"one": "a"}, {"one": ["a"]}


@pytest.mark.parametrize(
    ("schema", "take", "mirrors"),
    [
        ({"properties": ONE, "additionalProperties": False}, {"one": given("one")}, True),
        ({"properties": {"one": {"type": "array"}}, "additionalProperties": False}, {"one": given("one")}, True),
        ({"properties": ONE, "additionalProperties": False}, {"one": given("two")}, False),
        ({"properties": ONE, "additionalProperties": False}, {"one": given("one", default="a")}, False),
        ({"properties": ONE, "additionalProperties": False}, {"one": "a"}, False),
        ({"properties": {**ONE, "two": TEXT}, "additionalProperties": False}, {"one": given("one")}, False),
        ({"properties": ONE, "additionalProperties": False, "patternProperties": {"^x": {}}}, ONE, False),
        ({"properties": ONE}, {"one": given("one")}, False),
    ],
)
def test_a_step_that_gets_everything_by_its_own_name_mirrors_the_input(
    schema: dict[str, Any], take: dict[str, Any], mirrors: bool
) -> None:
    called = replace(READ, input_schema=schema)
    mirror = plan_composition(MADE, recipe(step("FETCH /a", take=take)), {called.key: called}).steps[0].mirror
    assert (mirror is not None) is mirrors
    if mirror is not None:
        value = NESTED if schema["properties"] != ONE else FLAT
        copied = mirror(value)
        assert copied == value
        assert copied is not value
        assert value is FLAT or copied["one"] is not value["one"]
