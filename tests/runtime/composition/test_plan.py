"""Plans: what is computed once for a recipe."""

from __future__ import annotations

from dataclasses import replace

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
