"""Wishes, slots of a schema, drafts, and recipes that are written and read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.planner.contracts import contract
from tests.extensions.negotiation.planner.services import HOTEL, approved

from bespeak.extensions.negotiation.plan import Miss
from bespeak.extensions.negotiation.planner.draft import (
    CallResult,
    Decision,
    Draft,
    Given,
    KeyMatch,
    Option,
    Pick,
    PlannedCall,
    RowValue,
    Wish,
    is_reading,
    read_wish,
)
from bespeak.extensions.negotiation.planner.operation import OperationIndex, PlanField
from bespeak.extensions.negotiation.planner.slot import Facts, SchemaTooLarge, fit, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import NounReading

KNOWN = OperationIndex(HOTEL).vocabulary


def wish(line: str) -> Wish:
    found = read_wish(contract(line), KNOWN)
    assert isinstance(found, Wish)
    return found


def test_fields_and_lists_are_kept_apart_and_sent_values_need_no_list() -> None:
    found = wish("FIND /rooms -> count:i rooms[].id rooms[].hotel.name")
    assert [field.text for field in found.singles] == ["count"]
    assert [field.text for field in found.tables[0].columns] == ["rooms[].id", "rooms[].hotel.name"]
    need, have = facts({"enum": ["a", "b"]}), facts({"type": "string"})
    assert fit(need, have) < 0.9 < fit(need, have, sent=True)


def test_nouns_of_a_path_say_what_is_wanted_and_what_inputs_belong_to() -> None:
    found = wish("FETCH /guests/{id}/latest-booking -> total:n")
    assert (found.noun, found.must, found.unknown) == ("booking", ("guest", "booking"), ("latest",))
    readings = wish("LIST /guests/bookings email:e -> bookings[].id").givens[0].readings
    assert {NounReading("guest", "email"), NounReading("booking", "email")} <= set(readings)
    assert "guest" not in wish("LIST /bookings email:e -> bookings[].id").said
    assert "guest" in wish("LIST /bookings guest_email:e -> bookings[].id").said


def test_path_parameters_need_no_declaration_and_a_proposal_must_want_something() -> None:
    proposal = replace(contract("FETCH /rooms/{id} -> price:n"), input_schema={})
    found = read_wish(proposal, KNOWN)
    assert isinstance(found, Wish)
    assert found.givens[0].readings == (NounReading("room", "id"),)
    found = read_wish(replace(contract("FIND /rooms -> id"), output_schema={}), KNOWN)
    assert isinstance(found, Miss)


@pytest.mark.parametrize(("method", "reads"), [("FIND", True), ("SUMMARIZE", True), ("BOOK", False), ("XYZZY", False)])
def test_a_verb_that_is_not_known_to_read_changes_something(method: str, reads: bool) -> None:
    assert is_reading(method) == reads


def paths(schema: dict[str, Any], *, most: int = 50, levels: int = 4) -> list[str]:
    return [".".join(slot.path) for slot in slots_of(schema, most=most, levels=levels)]


def facts(schema: dict[str, Any]) -> Facts:
    return slots_of({"properties": {"x": schema}}, most=9, levels=2)[0].facts


def test_references_and_combinations_are_followed() -> None:
    named = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {
        "$defs": {"Named": named},
        "properties": {
            "owner": {"allOf": [{"$ref": "#/$defs/Named"}, {"properties": {"age": {"type": "integer"}}}]},
            "friends": {"type": "array", "items": {"$ref": "#/$defs/Named"}},
        },
    }
    assert paths(schema) == ["owner", "owner.name", "owner.age", "friends", "friends.[].name"]


def test_recursive_and_large_schemas_are_bounded() -> None:
    node = {"properties": {"id": {"type": "string"}, "child": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    assert len(paths(schema, levels=3)) == 6
    schema = {"properties": {f"f{n}": {"type": "string"} for n in range(10_000)}}
    assert len(paths(schema)) == 50
    with pytest.raises(SchemaTooLarge):
        slots_of(schema, most=50, levels=4, strict=True)


def test_references_that_multiply_are_cut_off() -> None:
    many = {"allOf": [{"$ref": "#/$defs/bomb"}] * 50}
    schema = {"$defs": {"bomb": many}, "properties": {"x": {"$ref": "#/$defs/bomb"}}}
    assert paths(schema) == ["x"]
    with pytest.raises(SchemaTooLarge):
        slots_of(schema, most=50, levels=4, strict=True)


@rows(
    "need, have, quality",
    ({"type": "number"}, {"type": "integer"}, 1.0),
    ({"type": "integer"}, {"type": "number"}, 0.0),
    ({"type": "string"}, {"type": "integer"}, 0.0),
    ({"type": "string", "format": "date"}, {"type": "string", "format": "email"}, 0.0),
    ({"enum": ["a"]}, {"enum": ["b"]}, 0.0),
    ({"enum": ["a", "b"]}, {"enum": ["b"]}, 1.0),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, 0.9),
    ({"type": "integer", "minimum": 10}, {"type": "integer", "maximum": 5}, 0.0),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}, 1.0),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "string"}, 0.0),
    ({}, {"type": "string"}, 0.97),
)
def test_types_formats_values_and_bounds_decide_fit(need: dict[str, Any], have: dict[str, Any], quality: float) -> None:
    assert fit(facts(need), facts(have)) == pytest.approx(quality)


FIELD = PlanField(("x",), (), Facts())
OPERATION = OperationIndex(HOTEL).operations[0]


def test_calls_come_after_what_they_need_and_run_for_each_row_of_a_column() -> None:
    first = PlannedCall(1, OPERATION, ())
    second = PlannedCall(0, OPERATION, ((FIELD, CallResult(first, FIELD)),))
    assert Draft(singles=((FIELD, CallResult(second, FIELD)),)).calls == (first, second)
    call = PlannedCall(0, OPERATION, ((FIELD, RowValue(FIELD)),))
    assert call.is_per_row
    assert CallResult(call, FIELD).is_per_row


def test_results_depend_on_their_call_and_pick_and_repeated_inputs_change_nothing() -> None:
    assert Draft(singles=((FIELD, Given(FIELD)),)).givens == frozenset()
    call = PlannedCall(0, OPERATION, ((FIELD, Given(FIELD)),))
    key = Given(PlanField(("y",), (), Facts()))
    picked = CallResult(call, FIELD, Pick((KeyMatch(FIELD, key),)))
    assert (picked.givens, picked.calls) == ({"x", "y"}, {call})


def test_decisions_count_once_and_multiply() -> None:
    draft = Draft(decisions=frozenset({Decision("a", 0.9)}), weakest=0.8)
    assert round(draft.quality, 6) == 0.72
    assert round(draft.judged(Decision("b", 0.5)).quality, 6) == 0.36
    decisions = [Decision("a", 0.9), Decision("a", 0.9), Decision("b", 0.5)]
    assert Option(Given(FIELD), frozenset(decisions)).quality == 0.45


@rows(
    "line",
    "FIND /rooms/cheap max_price:n -> rooms[].id rooms[].price:n",
    "FETCH /rooms/{id}/hotel -> name address.city",
    "LIST /guests/bookings guest_email:e -> bookings[].id bookings[].room_price:n",
)
def test_steps_capture_what_later_ones_use(line: str) -> None:
    recipe = approved(line.replace("address.city", "city")).recipe
    captured = [step.output for step in recipe.steps]
    assert captured == [f"step_{number}" for number in range(1, len(captured) + 1)]
    assert recipe.to_json()["output"]


def test_recipes_have_a_stable_name_and_build_nested_objects() -> None:
    names = {approved("FETCH /rooms/{id} -> price:n").recipe.name for _ in range(2)}
    assert len(names) == 1
    assert names.pop().startswith("fetch-")
    found = approved("FETCH /rooms/{id} -> room.price:n room.beds:i").recipe.output["room"].to_json()
    assert (found["kind"], found["value"], set(found["select"])) == ("constant", {}, {"price", "beds"})


def test_every_step_and_every_field_is_explained() -> None:
    assert approved("FETCH /rooms/{id}/hotel -> name").explanation == (
        "Step 1: call FETCH /rooms/{id} with id = the input id.",
        "Step 2: call FETCH /hotels/{id} with id = hotel_id of step 1.",
        "Result: name = name of step 2.",
    )


def test_filters_and_picks_are_explained() -> None:
    assert approved("FIND /rooms/cheap max_price:n -> rooms[].id").explanation[-1] == (
        "Result: rooms are the rooms of step 1 where price is at most the input max_price, each with "
        "id = id of the row."
    )
    assert "where email equals the input guest_email" in approved("FETCH /guests guest_email:e -> name").explanation[-1]
