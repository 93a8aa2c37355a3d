"""Members that a schema describes, and members that may be removed from a value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.shape import members_of, without_empty
from bespeak.contract.schema.validation import Validator, compile_schema

ROOM: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "note": {"type": ["string", "null"]}, "next": {"$ref": "#/$defs/Room"}},
    "required": ["id"],
}
ROOMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
        "first": {"anyOf": [{"$ref": "#/$defs/Room"}, {"type": "null"}]},
        "free": {"type": "object"},
        "prices": {"type": "object", "additionalProperties": {"type": "object", "properties": {"USD": {}}}},
        "codes": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        "nothing": {"type": "object", "additionalProperties": False},
        "lists": {"type": "array"},
        "deep": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Room"}}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/$defs/Room"}]},
        "any": {"description": "Whatever it is."},
        "never": False,
    },
    "$defs": {"Room": ROOM},
}


def leads(schema: dict[str, Any], path: str) -> bool:
    found = members_of(schema)
    for name in path.split("."):
        below = found.step(name)
        if below is None:
            return False
        found = below
    return True


@pytest.mark.parametrize(
    "path",
    [
        *("rooms", "rooms.id", "rooms.next.next.id", "first.id", "free.whatever.more", "prices.suite.USD"),
        *("codes.x-1", "lists.a.b", "deep.id", "pair.id", "any.a.b"),
    ],
)
def test_field_that_the_schema_allows_is_reachable(path: str) -> None:
    assert leads(ROOMS, path)


@pytest.mark.parametrize(
    "path", ["room", "rooms.idd", "rooms.id.x", "first.x", "prices.suite.EUR", "nothing.x", "deep.x", "pair.x", "never"]
)
def test_field_that_the_schema_forbids_is_not_reachable(path: str) -> None:
    assert not leads(ROOMS, path)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {}}}, "not": {"properties": {"c": {}}}},
        {"$ref": "#/$defs/x", "properties": {"a": {}}, "$defs": {"x": {"properties": {"b": {}}}}},
        {"type": "array", "items": {"type": "array", "items": {"properties": {"a": {}, "b": {}}}}},
    ],
)
def test_combined_schemas_are_merged(schema: dict[str, Any]) -> None:
    assert sorted(members_of(schema).reachable) == ["a", "b"]


def test_recursive_list_ends() -> None:
    loop = {"$ref": "#/$defs/L", "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}}
    assert members_of(loop).reachable == []
    assert members_of(loop).step("a") is None
    assert without_empty([[[]], []], members_of(loop)) == [[[]], []]


@pytest.mark.parametrize(
    ("schema", "declared"),
    [
        ({"properties": {"since": {}}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"since": {}}}}}, True),
        ({"patternProperties": {"^s": {}}}, True),
        ({"patternProperties": {"^t": {}}}, False),
        ({"additionalProperties": {"type": "string"}}, False),
        ({"properties": {"since": False}}, False),
        ({}, False),
    ],
)
def test_a_name_is_declared_by_itself_or_by_a_pattern(schema: dict[str, Any], declared: bool) -> None:
    assert members_of(schema).declares("since") is declared


def test_empty_optional_members_are_removed_at_every_depth() -> None:
    value = {
        "rooms": [{"id": "", "note": None, "next": {"id": "2", "note": ""}}, {"id": "3", "extra": []}],
        "first": None,
        "free": {"a": {"b": {}}},
        "lists": [None, "", {}, {"a": None}, 0, False],
    }
    assert without_empty(value, members_of(ROOMS)) == {
        "rooms": [{"id": "", "next": {"id": "2"}}, {"id": "3"}],
        "lists": [None, "", {}, {}, 0, False],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"minProperties": 1},
        {"dependentRequired": {"b": ["a"]}},
        {"const": {"a": None, "b": 1}},
        {"enum": [{"a": None, "b": 1}]},
        {"not": {"maxProperties": 1}},
        {"if": {"required": ["b"]}, "then": {"required": ["a"]}},
    ],
)
def test_counted_or_compared_members_are_kept(schema: dict[str, Any]) -> None:
    value = {"a": None, "b": 1}
    assert without_empty(value, members_of(schema)) == value
    assert without_empty({"x": value, "y": []}, members_of({"properties": {"x": schema}})) == {"x": value}


def test_lists_with_unique_items_are_kept() -> None:
    value = {"x": [{"a": None}, {}]}
    assert without_empty(value, members_of({"properties": {"x": {"uniqueItems": True}}})) == value


# Schemas as people write them, each with a value that keeps it.
NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.sampled_from([None, "", "x", 0, 1, False])


@st.composite
def documented(draw: st.DrawFn, depth: int = 3) -> tuple[dict[str, Any], Any]:
    kind = draw(st.sampled_from(["scalar", "object", "list", "nullable"] if depth else ["scalar"]))
    if kind == "scalar":
        value = draw(SCALARS)
        return draw(st.sampled_from([{}, {"type": ["string", "null", "integer", "boolean"]}])), value
    if kind == "list":
        schema, _ = inner = draw(documented(depth - 1))
        items = [inner[1]] * draw(st.integers(0, 2))
        return {"type": "array", "items": schema}, items
    if kind == "nullable":
        schema, value = draw(documented(depth - 1))
        return {"anyOf": [schema, {"type": "null"}]}, draw(st.sampled_from([value, None]))
    parts = draw(st.dictionaries(NAMES, documented(depth - 1)))
    present = {name: value for name, (_, value) in parts.items() if draw(st.booleans())}
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _) in parts.items()},
        "required": [name for name in present if draw(st.booleans())],
    }
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    if draw(st.booleans()):
        schema = {"allOf": [schema, {"required": [name for name in present if draw(st.booleans())]}]}
    return schema, present


@given(documented())
def test_remaining_value_still_matches_the_schema(documented: tuple[dict[str, Any], Any]) -> None:
    schema, value = documented
    compiled = compile_schema(schema)
    assert isinstance(compiled, Validator)
    assert compiled.is_valid(value)
    if isinstance(value, (dict, list)):
        less = without_empty(value, members_of(schema))
        assert compiled.is_valid(less)
        assert without_empty(less, members_of(schema)) == less
