"""Slots: the places of a schema, through references and combinations, and never more work than allowed."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.extensions.negotiation.planner.slot import Facts, TooLarge, fit, slots_of


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


def test_a_recursive_schema_ends_at_its_levels() -> None:
    node = {"properties": {"id": {"type": "string"}, "child": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    assert len(paths(schema, levels=3)) == 6


def test_references_that_multiply_are_cut_off() -> None:
    many = {"allOf": [{"$ref": "#/$defs/bomb"}] * 50}
    schema = {"$defs": {"bomb": many}, "properties": {"x": {"$ref": "#/$defs/bomb"}}}
    assert paths(schema) == ["x"]
    with pytest.raises(TooLarge):
        slots_of(schema, most=50, levels=4, strict=True)


def test_more_fields_than_allowed_are_refused_if_strict() -> None:
    schema = {"properties": {f"f{n}": {"type": "string"} for n in range(10_000)}}
    assert len(paths(schema)) == 50
    with pytest.raises(TooLarge):
        slots_of(schema, most=50, levels=4, strict=True)


@pytest.mark.parametrize(
    ("need", "have", "quality"),
    [
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
    ],
)
def test_types_formats_values_and_bounds_decide_whether_a_value_fits(
    need: dict[str, Any], have: dict[str, Any], quality: float
) -> None:
    assert fit(facts(need), facts(have)) == pytest.approx(quality)


def test_a_value_that_is_sent_need_not_list_its_values() -> None:
    need, have = facts({"enum": ["a", "b"]}), facts({"type": "string"})
    assert fit(need, have) < 0.9 < fit(need, have, sent=True)
