"""Schemas in plain form."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.projections.model_tools import plain_form
from bespeak.documents.projections.model_tools.passes import NOTHING, Mark, ToolSchema
from bespeak.documents.projections.model_tools.plain_form import (
    Merger,
    TooComplexError,
    hoist,
    sentence,
    with_single_types,
)

TEXT = {"type": ["string"]}
NUMBER = {"type": ["number"]}


def plain(schema: dict[str, Any]) -> Any:
    raw = hoist(schema)
    made = Merger(raw.definitions).document(raw.root)
    return {key: value for key, value in made.root.items() if key != "$defs"}


@rows(
    "schema, made",
    ({"const": "a"}, {"enum": ["a"]}),
    ({"const": 1, "enum": [True, 1.0]}, {"enum": [1.0]}),
    ({"items": True, "additionalProperties": False}, {"items": {}, "additionalProperties": NOTHING}),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": "number"}]}, {"type": ["integer"]}),
    ({"allOf": [{"type": "string"}, {"type": "number"}]}, NOTHING),
    ({"allOf": [{"minimum": 1, "maxLength": 4}, {"minimum": 3, "maxLength": 2}]}, {"minimum": 3, "maxLength": 2}),
    ({"allOf": [{"enum": ["a", 1]}, {"enum": [1, "b"]}]}, {"enum": [1]}),
    (
        {"description": "outer", "allOf": [{"type": "string", "description": "inner"}]},
        {**TEXT, "description": "outer"},
    ),
    ({"anyOf": [{"type": "string"}, False]}, TEXT),
    ({"anyOf": [False]}, NOTHING),
    ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [TEXT, NUMBER], Mark.ONE: True}),
    (
        {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}]},
        {"anyOf": [TEXT, NUMBER]},
    ),
    ({"type": "no", "enum": "no", "required": 3, "properties": []}, {"type": ["no"]}),
)
def test_a_schema_becomes_plain(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert plain(schema) == made


def test_objects_in_parts_become_one_object() -> None:
    first = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    second = {"properties": {"a": {"maxLength": 3}, "b": {"type": "number"}}, "required": ["b"]}
    properties = {"a": {**TEXT, "maxLength": 3}, "b": NUMBER}
    made = {"type": ["object"], "properties": properties, "required": ["a", "b"]}
    assert plain({"allOf": [first, second]}) == made


def test_members_of_parts_and_unions_are_combined() -> None:
    closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    made = plain({"allOf": [closed, {"properties": {"b": {}}}]})
    assert made["properties"] == {"a": {}}
    assert plain({"allOf": [closed, {"properties": {"b": {}}, "required": ["b"]}]}) == NOTHING
    made = plain({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": False})
    assert made == {"properties": {"b": {}, "a": {}}, "additionalProperties": NOTHING}
    options = [{"properties": {"b": {}}}, {"required": ["a"], "minProperties": 2}]
    made = plain({"type": "object", "properties": {"a": {}}, "anyOf": options})
    assert [option.get("required") for option in made["anyOf"]] == [None, ["a"]]
    assert all(option["type"] == ["object"] and "a" in option["properties"] for option in made["anyOf"])


@rows(
    "schema, said",
    ({"not": {"const": 1}}, 'It also meets this JSON Schema: {"not":{"const":1}}.'),
    ({"dependentRequired": {"a": ["b", "c"]}}, "If a is given, so is b and c."),
    (
        {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
        "At least one of these must be given: a; b and c.",
    ),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "Exactly one of these must be given: a; b."),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "It matches the pattern b"),
    (
        {"if": {"const": 1}, "then": {"const": 2}},
        'It also meets this JSON Schema: {"if":{"if":{"const":1},"then":{"const":2}}}.',
    ),
)
def test_what_cannot_be_kept_is_said(schema: dict[str, Any], said: str) -> None:
    assert plain({"type": "object", **schema})[Mark.SAYS] == [said]


def test_reference_stays_unless_something_else_is_said_and_one_elsewhere_accepts_everything() -> None:
    defs = {"$defs": {"A": {"type": "string", "description": "An A."}}}
    assert plain({"$ref": "#/$defs/A", "description": "Mine.", **defs}) == {"$ref": "#/$defs/A", "description": "Mine."}
    assert plain({"$ref": "#/$defs/A", "minLength": 2, **defs}) == {**TEXT, "minLength": 2, "description": "An A."}
    assert plain({"$ref": "https://example.com/a.json"}) == {
        Mark.UNFIT: "the reference https://example.com/a.json leads nowhere"
    }


@pytest.mark.parametrize(
    "definitions", [{"A": {"$ref": "#/$defs/A"}}, {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}]
)
def test_a_schema_that_is_defined_by_itself_accepts_everything(definitions: dict[str, Any]) -> None:
    raw = hoist({"$ref": "#/$defs/A", "$defs": definitions})
    assert Merger(raw.definitions).document(raw.root).definitions["A"] == {}


def test_recursive_definitions_that_are_merged_come_to_an_end() -> None:
    def tree(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"below": {"$ref": f"#/$defs/{name}"}, name: {"type": "string"}}}

    made = plain({"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": tree("A"), "B": tree("B")}})
    assert made["properties"].keys() == {"below", "A", "B"}
    assert "The service checks further conditions." in str(made)


def test_large_unions_are_not_multiplied() -> None:
    unions = [{"anyOf": [{"type": "object", "properties": {f"{key}{n}": {}}} for n in range(9)]} for key in "ab"]
    made = plain({"allOf": unions})
    assert len(made["anyOf"]) == 9
    assert made[Mark.SAYS] == ["The service checks further conditions."]


@pytest.mark.parametrize("limit", ["_MOST_MERGES", "_MOST_NODES"])
def test_a_schema_that_takes_too_much_work_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [{"properties": {f"p{number}": {}, "shared": {"minLength": number}}} for number in range(10)]
    plain({"allOf": parts})
    monkeypatch.setattr(plain_form, limit, 20)
    with pytest.raises(TooComplexError):
        plain({"allOf": parts})


def single(node: dict[str, Any]) -> dict[str, Any]:
    return with_single_types(ToolSchema(node, {})).root


@rows(
    "node, made",
    ({"type": ["string"], "minLength": 1, "minimum": 2}, {"type": "string", "minLength": 1}),
    (
        {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 2, "description": "x"},
        {
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}, {"type": "null"}],
            "description": "x",
        },
    ),
    ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    ({"items": {}}, {"type": "array", "items": {}}),
    ({"minimum": 2}, {Mark.SAYS: ["At least 2."]}),
    ({"type": ["file"]}, {}),
    ({"enum": ["a", "a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ({"enum": [1, 2.0]}, {"type": "integer", "enum": [1, 2.0]}),
    ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
    ({"enum": ["a", 1], "type": ["number"]}, {"type": "integer", "enum": [1]}),
    ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    ({"enum": [True, False]}, {"type": "boolean"}),
    ({"enum": [True]}, {"type": "boolean", "enum": [True]}),
    ({"enum": [{"a": 1}]}, {"type": "object", Mark.SAYS: ['One of: {"a":1}.']}),
    (
        {"anyOf": [{"type": ["string", "null"]}, {"type": ["null"]}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    ({"type": ["array"], "items": NOTHING}, {"type": "array", "maxItems": 0}),
    (
        {"prefixItems": [{"type": ["null"]}, NOTHING], "maxItems": 9},
        {"type": "array", "prefixItems": [{"type": "null"}], "maxItems": 1},
    ),
    ({"type": ["object"], "additionalProperties": NOTHING}, {"type": "object", "additionalProperties": False}),
    ({"type": ["object"], "patternProperties": {"a": NOTHING}}, {"type": "object"}),
)
def test_a_node_has_one_type(node: dict[str, Any], made: dict[str, Any]) -> None:
    assert single(node) == made


def test_a_node_that_accepts_nothing_cannot_be_expressed() -> None:
    assert Mark.UNFIT in single(NOTHING)


@rows(
    "schema, name",
    ({"$defs": {"A": {"type": "string"}}, "items": {"$ref": "#/$defs/A"}}, "A"),
    ({"definitions": {"A": {"type": "string"}}, "items": {"$ref": "#/definitions/A"}}, "A"),
    ({"properties": {"a/b c": {"type": "string"}}, "items": {"$ref": "#/properties/a~1b%20c"}}, "a_b_c"),
    ({"$defs": {"A": {"$anchor": "x", "type": "string"}}, "items": {"$ref": "#x"}}, "A"),
    ({"$defs": {"A": {"$dynamicAnchor": "x", "type": "string"}}, "items": {"$dynamicRef": "#x"}}, "A"),
)
def test_a_target_becomes_a_definition_with_a_plain_name(schema: dict[str, Any], name: str) -> None:
    made = hoist(schema)
    assert made.root["items"] == {"$ref": f"#/$defs/{name}"}
    assert made.definitions == {name: {"type": "string"}}


def test_whole_schema_can_be_a_target_and_equal_last_names_have_different_definitions() -> None:
    made = hoist({"type": "object", "properties": {"below": {"$ref": "#"}}})
    assert made.definitions["root"]["properties"] == {"below": {"$ref": "#/$defs/root"}}
    parts = {"$defs": {"A": {"type": "string"}}, "definitions": {"A": {"type": "integer"}}}
    made = hoist({**parts, "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/definitions/A"}]})
    assert made.definitions == {"A": {"type": "string"}, "A_2": {"type": "integer"}}


@pytest.mark.parametrize(("place", "found"), [("#/$defs/X", {}), ("#/$defs/True", {}), ("#/$defs/False", {"not": {}})])
def test_a_missing_or_boolean_target_is_an_object(place: str, found: dict[str, Any]) -> None:
    made = hoist({"$defs": {"True": True, "False": False}, "items": {"$ref": place}})
    assert list(made.definitions.values()) == [found]


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"items": schema}
    with pytest.raises(TooComplexError):
        hoist(schema)


@rows(
    "keyword, value, said",
    ("minLength", 1, ["At least 1 character."]),
    ("maxItems", 3, ["At most 3 items."]),
    ("pattern", "^a.$", ["It matches the pattern ^a.$"]),
    ("format", "uri", ["Format: uri."]),
    ("format", "int64", []),
    ("default", "x", ["Default: x."]),
    ("default", None, []),
    ("default", [1, "a"], ['Default: [1,"a"].']),
    ("enum", ["a", 1], ['One of: "a", 1.']),
    ("enum", list(range(30)), [f"One of: {', '.join(map(str, range(20)))}, ...."]),
    ("uniqueItems", True, ["No item twice."]),
    ("uniqueItems", False, []),
    ("examples", ["a", "b"], ['Example: "a".']),
    ("examples", [], []),
    ("deprecated", True, ["Deprecated."]),
    ("dependentRequired", "no", []),
    ("contains", {"const": 1}, ['It also meets this JSON Schema: {"contains":{"const":1}}.']),
)
def test_a_keyword_is_said_in_words(keyword: str, value: Any, said: list[str]) -> None:
    assert list(sentence(keyword, value)) == said


def test_a_long_value_is_cut_and_one_that_is_not_json_is_no_error() -> None:
    (said,) = sentence("not", {"const": "x" * 10_000})
    assert len(said) < 300
    assert list(sentence("default", {1j})) == ["Default: {1j}."]
