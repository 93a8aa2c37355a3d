"""Short fields as JSON Schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.shorthand import (
    expand_input,
    expand_output,
    expand_shorthand,
    expand_tree,
    field_schema,
    joined,
    type_schema,
)
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


@rows(
    "written, schema",
    ("", {}),
    ("any", {}),
    ("int", {"type": "integer"}),
    ("Integer", {"type": "integer"}),
    ("ISO8601", {"type": "string", "format": "date-time"}),
    ("ISO 8601", {"type": "string", "format": "date-time"}),
    ("string, format: date-time, ISO 8601", {"type": "string", "format": "date-time"}),
    ("date", {"type": "string", "format": "date"}),
    ("url", {"type": "string", "format": "uri"}),
    ("integer, minimum: 1, maximum: 20", {"type": "integer", "minimum": 1, "maximum": 20}),
    ("number, min: 0.5, max: 1e3", {"type": "number", "minimum": 0.5, "maximum": 1000.0}),
    ("string, enum: [CONFIRMED, PENDING]", {"type": "string", "enum": ["CONFIRMED", "PENDING"]}),
    ("enum: [1, 'two, three', true]", {"enum": [1, "two, three", True]}),
    ("array", {"type": "array"}),
    ("[array]", {"type": "array"}),
    ("[array of restaurant objects]", {"type": "array", "items": {"type": "object", "title": "restaurant"}}),
    ("array of strings", {"type": "array", "items": {"type": "string"}}),
    ("list of integer", {"type": "array", "items": {"type": "integer"}}),
    ("array of objects", {"type": "array", "items": {"type": "object"}}),
    ("array of rooms", {"type": "array", "items": {"title": "rooms"}}),
    ("string, in lower case", {"type": "string", "description": "in lower case"}),
    ("string, default: none, nullable: yes", {"type": "string", "default": "none", "description": "nullable: yes"}),
)
def test_a_short_type_is_a_json_schema(written: str, schema: dict[str, Any]) -> None:
    assert type_schema(written) == schema


@rows(
    "written, name, schema",
    ("status", "status", {}),
    ("  size   (int) ", "size", {"type": "integer"}),
    ("size(int)", "size", {"type": "integer"}),
    ("size: int", "size", {"type": "integer"}),
    ("rooms: [array]", "rooms", {"type": "array"}),
    ("not a name!", "not a name!", {}),
)
def test_a_field_has_a_name_and_a_type(written: str, name: str, schema: dict[str, Any]) -> None:
    assert field_schema(written) == (name, schema)


def test_input_allows_only_the_listed_fields_also_if_yaml_splits_them_at_a_comma() -> None:
    assert expand_input({"required": ["a (int)"], "optional": ["b"]}) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert joined(["a (integer", {"minimum": 1}, {"maximum": "20)"}, "b"]) == [
        ("a (integer, minimum: 1, maximum: 20)", 0),
        ("b", 3),
    ]
    assert joined(["a (open"]) == [("a (open", 0)]


@rows(
    "value",
    {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    {"properties": {"a": {}}, "required": ["a"]},
    {"$ref": "#/schemas/x"},
    {"required": ["a"], "minProperties": 1},
    {"required": [1]},
    {"required": "a"},
    {"optional": [{"a": {"type": "string"}}]},
    {},
    True,
    None,
    "text",
    [],
)
def test_schema_and_other_values_are_unchanged(value: Any) -> None:
    assert expand_input(value) is value


@rows(
    "value, properties",
    (["a", "b (string)"], {"a": {}, "b": {"type": "string"}}),
    ({"a": None, "title": None}, {"a": {}, "title": {}}),
    (
        {"a": "string", "b": ["array of integers"]},
        {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    ),
)
def test_an_output_has_all_its_fields(value: Any, properties: dict[str, Any]) -> None:
    assert expand_output(value) == {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    "value",
    [{"type": "object"}, {"type": "string"}, {"a": "some prose"}, {"a": {"type": "string"}}, {"a": 1}, {}, True, []],
)
def test_schema_or_other_output_is_unchanged(value: Any) -> None:
    assert expand_output(value) is value


FIELDS = st.lists(st.text("ab(): ,[]{}'\"1", max_size=12), max_size=4)


@given(st.fixed_dictionaries({}, optional={"required": FIELDS, "optional": FIELDS}))
def test_expansion_is_idempotent(value: Any) -> None:
    once = expand_input(value)
    assert expand_input(once) == once
    for fields in value.values():
        output = expand_output(fields)
        assert expand_output(output) == output


TEXT = """\
agis: "1.0"
endpoints:
  - method: BOOK
    input:
      required: [room (int), size (integer, minimum: 1, maximum: 20), late]
      optional:
        - note (string)
    output: {code, rooms: [array]}
    errors: {gone, full}
  - method: FIND
    input: {type: object, properties: {}}
    output: [code]
    errors: [gone]
"""


def tree() -> YamlTree:
    parsed = parse_yaml(TEXT, "x.agis")
    assert isinstance(parsed, YamlTree)
    return parsed


def test_short_fields_in_yaml_become_schemas() -> None:
    data = expand_shorthand(tree().data)
    book, find = data["endpoints"]
    assert book["input"] == {
        "type": "object",
        "properties": {
            "room": {"type": "integer"},
            "size": {"type": "integer", "minimum": 1, "maximum": 20},
            "late": {},
            "note": {"type": "string"},
        },
        "required": ["room", "size", "late"],
        "additionalProperties": False,
    }
    assert book["output"]["properties"] == {"code": {}, "rooms": {"type": "array"}}
    assert book["errors"] == ["gone", "full"]
    assert (find["input"], find["output"]["required"]) == ({"type": "object", "properties": {}}, ["code"])


def test_input_data_is_not_changed_and_expanding_twice_loses_no_place() -> None:
    data = tree().data
    before = copy.deepcopy(data)
    once = expand_shorthand(data)
    assert data == before
    assert expand_shorthand(once) is once
    parsed = tree()
    expand_tree(parsed)
    before = parsed.locate("/endpoints/0/input/properties/late")
    expand_tree(parsed)
    assert parsed.locate("/endpoints/0/input/properties/late") == before


@rows(
    "at, value",
    ("/endpoints/0/input/properties/room", "room (int)"),
    ("/endpoints/0/input/properties/room/type", "room (int)"),
    ("/endpoints/0/input/properties/late", "late"),
    ("/endpoints/0/input/required/2", "late"),
    ("/endpoints/0/input/properties/note", "note (string)"),
    ("/endpoints/0/output/properties/rooms", "[array]"),
    ("/endpoints/0/method", "BOOK"),
    ("/endpoints/1/output/required/0", "code"),
    ("/endpoints/1/input/type", "object"),
)
def test_part_of_a_schema_has_the_place_of_its_short_form(at: str, value: str) -> None:
    parsed = tree()
    expand_tree(parsed)
    span = parsed.value_span(at)
    assert span is not None
    assert TEXT[span.start : span.end] == value


def test_an_error_and_a_missing_field_have_places_too() -> None:
    parsed = tree()
    expand_tree(parsed)
    assert str(parsed.locate("/endpoints/0/errors/1", key=True)) == "x.agis:9:20"
    assert str(parsed.locate("/endpoints/0/input/properties/none")) == "x.agis:4:5"


def test_only_shorthand_is_expanded() -> None:
    parsed = tree()
    assert not parsed.is_made("/endpoints/0/input/required")
    expand_tree(parsed)
    assert parsed.is_made("/endpoints/0/input/required")
    assert parsed.is_made("/endpoints/0/input")
    assert not parsed.is_made("/endpoints/0")
    assert not parsed.is_made("/endpoints/1/input")


@pytest.mark.parametrize("data", [None, [], "text", {"endpoints": {}}, {"endpoints": [1, None]}, {}])
def test_other_data_is_unchanged(data: object) -> None:
    assert expand_shorthand(data) is data
