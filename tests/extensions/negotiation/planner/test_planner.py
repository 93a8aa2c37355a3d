"""The planner as a whole: the same answer every time, whatever is proposed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.extensions.negotiation.planner.contracts import contract
from tests.extensions.negotiation.planner.services import HOTEL, approved

from bespeak.extensions.negotiation.plan import Impossible, Plan
from bespeak.extensions.negotiation.planner.planner import Planner

BOMB: dict[str, Any] = {
    "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 60}},
    "properties": {"x": {"$ref": "#/$defs/a"}},
}
NODE: dict[str, Any] = {"properties": {"id": {"type": "string"}, "child": {"$ref": "#"}, "other": {"$ref": "#"}}}


def nest(keyword: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
    for _ in range(depth):
        found = {keyword: [found, {"type": "object", "properties": {"name": {"type": "string"}}}]}
    return found


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"f{n}": {"type": "string"} for n in range(10_000)}},
        BOMB,
        NODE,
        nest("allOf", 100),
        nest("oneOf", 100),
        {"properties": {"x": {"enum": [f"v{n}" for n in range(100_000)]}}},
        {"patternProperties": {"(a+)+$": {"type": "string"}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"properties": []},
        {"properties": {"": {"type": "string"}, "a.b": {"type": "string"}, "[]": {"type": "array", "items": {}}}},
        {"properties": {f"list{n}": {"type": "array", "items": {"properties": {"id": {}}}} for n in range(60)}},
        {"type": 5, "properties": {"x": {"type": [None, 3], "enum": [{}], "items": 7}}},
    ],
    ids=[
        "many",
        "bomb",
        "recursive",
        "allOf",
        "oneOf",
        "enum",
        "pattern",
        "loop",
        "list",
        "names",
        "lists",
        "nonsense",
    ],
)
@pytest.mark.parametrize("side", ["input_schema", "output_schema"])
def test_hostile_schemas_are_refused_and_not_approved(schema: dict[str, Any], side: str) -> None:
    proposal = replace(contract("FETCH /rooms/{id} colour -> price:n paint"), **{side: schema})
    found = Planner(HOTEL).plan(proposal)
    assert isinstance(found, Impossible)
    assert found.misses[0].reason


def test_names_that_no_recipe_can_say_are_refused_with_the_name() -> None:
    proposal = replace(contract("FETCH /rooms/{id} -> price:n"), output_schema={"properties": {"a.b": {}}})
    found = Planner(HOTEL).plan(proposal)
    assert isinstance(found, Impossible)
    assert "'a.b'" in found.misses[0].reason


def test_an_endpoint_with_odd_names_does_not_disturb_the_others() -> None:
    odd = replace(HOTEL[0], path="/odd", output_schema={"properties": {"": {}, "[]": {"items": NODE}, "a.b": {}}})
    assert isinstance(Planner([*HOTEL, odd]).plan(contract("FETCH /rooms/{id} -> price:n")), Plan)


def test_a_plan_found_before_the_bound_counts_but_one_before_the_time_limit_does_not() -> None:
    proposal = contract("FIND /rooms/grand -> rooms[].id")
    full = Planner(HOTEL).plan(proposal)
    assert isinstance(full, Plan)
    assert not full.is_certain
    answers = [Planner(HOTEL).plan(proposal, expansions=bound) for bound in range(1, 60)]
    assert isinstance(answers[0], Impossible)
    assert answers[0].exhausted
    assert any(answer == full for answer in answers)


def test_too_many_steps_are_refused() -> None:
    proposal = contract("FETCH /rooms/{id}/hotel -> name city")
    assert isinstance(Planner(HOTEL).plan(proposal, depth=1), Impossible)


def test_scopes_impact_and_confidence_follow_from_the_steps() -> None:
    found = approved("FETCH /rooms/{id}/hotel -> name city")
    assert (found.impact, found.confidence) == ("informational", round(0.9 * 0.9 * found.quality, 4))


SCRIPT = """
from tests.extensions.negotiation.planner.services import plan
for line in (
    "LIST /bookings/rooms guest_email -> bookings[].id bookings[].room_kind bookings[].guest_name",
    "FETCH /rooms/{id}/hotel -> room_price:n hotel_name",
    "FETCH /rooms/{id} -> stars:i",
):
    print(plan(line))
"""


@pytest.mark.process
def test_the_hash_seed_changes_nothing() -> None:
    answers = set()
    for seed in ("0", "1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers.add(ran.stdout)
    assert len(answers) == 1
