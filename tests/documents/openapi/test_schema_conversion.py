"""Schemas of every OpenAPI dialect keep their meaning in JSON Schema 2020-12, and always compile."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.openapi.reading import compiled, read, read_schema, rules
from tests.documents.openapi.reading import document as described

from bespeak.contract.schema.subschemas import nodes
from bespeak.documents.openapi.schema_conversion import LIMITS
from bespeak.documents.toml_text import find_null
from bespeak.text.language.sentence import word_set

KEYWORDS = (
    *("type", "format", "nullable", "enum", "const", "default", "properties", "required", "additionalProperties"),
    *("items", "allOf", "anyOf", "oneOf", "not", "pattern", "minimum", "exclusiveMinimum", "maxLength", "multipleOf"),
    *("$ref", "readOnly", "discriminator", "patternProperties", "prefixItems", "if", "then", "$id", "$schema", "$defs"),
    *("dependentRequired", "dependentSchemas", "unevaluatedProperties", "contains", "uniqueItems", "$dynamicRef"),
)
VALUES = word_set(
    "object string array integer null file #/components/schemas/A #/components/schemas/B ( ^a$ (?!x) binary byte int32 "
    "date-time # #/paths"
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(sorted(VALUES)),
)
schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(schemas, schemas, schemas, st.sampled_from(["3.0.3", "3.1.0"]), st.sampled_from(["input", "output"]))
def test_any_json_read_as_a_schema_gives_one_that_compiles(
    schema: Any, one: Any, other: Any, version: str, direction: str
) -> None:
    written = copy.deepcopy(schema)
    made, _ = read_schema(schema, version, direction=direction, schemas={"A": one, "B": other})
    compiled(made).violations({"a": [1, None]})
    assert find_null(made) is None  # an endpoint file could not hold it
    assert schema == written


@rows(
    "schema, good, bad",
    ({"type": "string", "nullable": True}, ["a", None], [1]),
    ({"type": "string", "nullable": True, "enum": ["a"]}, ["a", None], ["b"]),
    ({"type": "string", "enum": ["a", None]}, ["a", None], ["b"]),
    ({"nullable": True, "allOf": [{"$ref": "#/components/schemas/Id"}]}, [1, None], ["a"]),
    ({"nullable": True, "$ref": "#/components/schemas/Id"}, [1, None], ["a"]),
    ({"nullable": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}, [1, "a", None], [[]]),
    ({"nullable": True, "properties": {"a": {"type": "string"}}}, [{}, None], [1]),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, [1.1], [1]),
    ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, [1], [2]),
    ({"type": "integer", "minimum": "3"}, [3], [2]),
    ({"type": "string", "maxLength": 2.0}, ["ab"], ["abc"]),
    ({"properties": {"a": {"type": "string"}}}, [{}], [1, {"a": 1}]),
    ({"items": {"type": "string"}}, [[], ["a"]], ["a", [1]]),
    ({"type": "array"}, [[1, "a"]], [1]),
    ({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}, [["a", 1]], [[1, 1]]),
    ({"type": "object", "additionalProperties": {}}, [{"a": 1}], [1]),
    ({"type": "object", "additionalProperties": {"type": "string"}}, [{"a": "b"}], [{"a": 1}]),
    ({"type": "float"}, [1.5], ["a"]),
    ({"type": "any"}, [1, "a", None], []),
    ({"format": "uuid", "type": "string"}, ["00000000-0000-4000-8000-000000000000"], ["a"]),
    ({"format": "guid", "type": "string"}, [], ["a"]),
    ({"format": "phone", "type": "string"}, ["a"], [1]),
    (True, [1], []),
    (False, [], [1]),
)
def test_3_0_schema_accepts_the_intended_values(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert_accepts(read_schema(schema, schemas={"Id": {"type": "integer", "description": "x" * 300}})[0], good, bad)


def assert_accepts(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    validator = compiled(schema)
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


@rows(
    "schema, good, bad",
    ({"type": ["string", "null"]}, ["a", None], [1]),
    ({"type": ["string", "null"], "enum": ["a", None]}, ["a", None], ["b"]),
    ({"const": None}, [None], [1]),
    ({"exclusiveMinimum": 1, "type": "number"}, [2], [1]),
    ({"$ref": "#/components/schemas/Id", "minimum": 5}, [5], [1, "a"]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"]], [["a", 1]]),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, [{"a": 1, "b": 1}, {}], [{"a": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{}], [{"a": 1}]),
    ({"type": "string", "nullable": True}, [None], [1]),
)
def test_3_1_schema_accepts_the_intended_values(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert_accepts(read_schema(schema, "3.1.0", schemas={"Id": {"type": "integer"}})[0], good, bad)


def test_keywords_beside_a_reference_count_from_3_1_on() -> None:
    schema = {"$ref": "#/components/schemas/Room", "description": "Where to sleep."}
    rooms = {"Room": {"type": "object", "description": "A room."}}
    assert read_schema(schema, "3.0.3", schemas=rooms)[0]["description"] == "A room."
    assert read_schema(schema, "3.1.0", schemas=rooms)[0]["description"] == "Where to sleep."


ROOM = {
    "type": "object",
    "required": ["id", "name", "secret"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"type": "string", "writeOnly": True},
        "owner": {"$ref": "#/components/schemas/Owner"},
    },
}


def test_read_only_is_not_in_inputs_and_write_only_not_in_outputs() -> None:
    owner = {"type": "object", "readOnly": True, "properties": {}}
    given, _ = read_schema(ROOM, schemas={"Owner": owner})
    assert (given["required"], list(given["properties"])) == (["name", "secret"], ["name", "secret"])
    taken, _ = read_schema(ROOM, direction="output", schemas={"Owner": owner})
    assert (taken["required"], list(taken["properties"])) == (["id", "name"], ["id", "name", "owner"])


def test_closed_parts_are_one_closed_object() -> None:
    base = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
    beds = {"type": "object", "properties": {"beds": {"type": "integer"}}, "additionalProperties": False}
    room = {"allOf": [{"$ref": "#/components/schemas/Base"}, beds]}
    schemas = {"Base": {**base, "required": ["id"]}, "Room": room}
    made, found = read_schema({"$ref": "#/components/schemas/Room"}, schemas=schemas)
    assert_accepts(made, [{"id": "1", "beds": 2}], [{"id": "1", "colour": "red"}, {"beds": 2}])
    assert found == []


def test_closed_parts_that_cannot_be_merged_do_not_exclude_each_other() -> None:
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
            {"anyOf": [{"properties": {"b": {"type": "string"}}}, {"properties": {"c": {"type": "string"}}}]},
        ]
    }
    assert_accepts(read_schema(schema)[0], [{"a": 1, "b": "x"}], [{"d": 1}])


def test_read_only_property_of_another_part_is_not_required() -> None:
    schema = {
        "allOf": [
            {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}},
            {"type": "object", "required": ["id", "name"], "properties": {"name": {"type": "string"}}},
        ]
    }
    assert read_schema(schema)[0]["required"] == ["name"]


def test_a_recursive_schema_refers_to_its_own_definitions() -> None:
    node = {
        "type": "object",
        "properties": {
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
            "parent": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/Node"}]},
        },
    }
    made, found = read_schema({"$ref": "#/components/schemas/Node"}, schemas={"Node": node})
    assert list(made["$defs"]) == ["Node"]
    assert_accepts(made, [{"children": [{"children": [], "parent": None}]}], [{"children": [{"children": [1]}]}])
    assert found == []


@rows(
    "schemas",
    {
        "A": {"allOf": [{"$ref": "#/components/schemas/B"}, {"minLength": 1}]},
        "B": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "string"}]},
    },
    {"A": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"type": "string"}]}},
    {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}},
    {"A": {"$ref": "#/components/schemas/A"}},
    {
        "A": {
            "properties": {"p": {"allOf": [{"$ref": "#/components/schemas/B"}, {}]}},
            "not": {"$ref": "#/components/schemas/B"},
        },
        "B": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"items": {}}]},
    },
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_circular_references_are_cut_and_reported(schemas: dict[str, Any], version: str) -> None:
    made, found = read_schema({"$ref": "#/components/schemas/A"}, version, schemas=schemas)
    compiled(made)
    assert "D161" in rules(found)


def test_long_chain_of_parts_is_cut_and_reported() -> None:
    schemas: dict[str, Any] = {
        f"S{n}": {"anyOf": [{"$ref": f"#/components/schemas/S{n + 1}"}, {"type": "array", "items": {}}]}
        for n in range(300)
    }
    made, found = read_schema({"$ref": "#/components/schemas/S0"}, schemas=schemas | {"S300": {"type": "string"}})
    compiled(made)
    assert "D162" in rules(found)


def test_deep_schema_is_cut_and_reported() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(80):
        schema = {"type": "object", "properties": {"a": schema}}
    made, found = read_schema(schema)
    compiled(made)
    assert rules(found) == ["D162"]


@rows(
    "schema, keyword",
    ({"type": "string", "pattern": "^(?!a)"}, "pattern"),
    ({"type": "string", "pattern": "("}, "pattern"),
    ({"type": "string", "pattern": "^(a+)+$"}, "pattern"),
    ({"type": "wrong"}, "type"),
    ({"type": "object", "required": True}, "required"),
    ({"type": "object", "properties": ["a"]}, "properties"),
    ({"type": "string", "minLength": -1}, "minLength"),
    ({"enum": list(range(2000))}, "enum"),
    ({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, "default"),
)
def test_unusable_keyword_is_dropped_and_reported(schema: dict[str, Any], keyword: str) -> None:
    made, found = read_schema(schema)
    compiled(made)
    assert keyword not in made
    assert [finding.rule for finding in found if keyword in finding.message] == ["D163"]


def test_bytes_are_base64_own_keywords_are_dropped_and_a_discriminator_loosens_a_union() -> None:
    assert read_schema({"type": "string", "format": "binary"})[0] == {"type": "string", "contentEncoding": "base64"}
    assert read_schema({"type": "string", "format": "byte"})[0] == {"type": "string", "contentEncoding": "base64"}
    kept = {"type": "object", "title": "Room"}
    dropped = {"example": {"a": 1}, "xml": {"name": "x"}, "externalDocs": {"url": "https://x.example"}}
    ids = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://x.example/room"}
    assert read_schema({**kept, **dropped, **ids, "x-internal": True}, "3.1.0")[0] == kept
    part = {"type": "object", "properties": {"kind": {"type": "string"}}}
    schema = {"oneOf": [{**part, "title": "A"}, {**part, "title": "B"}], "discriminator": {"propertyName": "kind"}}
    assert compiled(read_schema(schema)[0]).is_valid({"kind": "a"})


def test_two_definitions_with_one_name_stay_separate() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/components/schemas/X"}, "b": {"$ref": "#/components/schemas/X/properties/X"}},
    }
    inner = {"type": "object", "properties": {"deep": {"type": "string"}}}
    made, _ = read_schema(schema, schemas={"X": {"type": "object", "properties": {"X": inner}}})
    assert list(made["$defs"]) == ["X", "X_2"]
    assert not compiled(made).is_valid({"b": {"deep": 1}})


def test_only_reachable_definitions_are_included_and_data_stays_data() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [{"$ref": "#/nowhere"}]}}}
    made, found = read_schema(schema)
    assert made["properties"]["a"]["enum"] == [{"$ref": "#/nowhere"}]
    assert found == []
    made, found = read_schema({"type": "array", "items": {"$ref": "#/components/schemas/Thing7"}}, schemas=web(9, 1))
    assert list(made["$defs"]) == ["Thing7"]
    assert found == []


def web(count: int, links: int) -> dict[str, Any]:
    """Build schemas that each refer to several others, so that each reaches all."""
    return {
        f"Thing{n}": {
            "type": "object",
            "description": "A thing that knows others. " * 3,
            "properties": {
                "name": {"type": "string"},
                **{f"to{k}": {"$ref": f"#/components/schemas/Thing{(n * links + k) % count}"} for k in range(links)},
            },
        }
        for n in range(count)
    }


@pytest.mark.parametrize("direction", ["input", "output"])
def test_schema_with_too_many_references_keeps_the_nearest(direction: Any) -> None:
    made, found = read_schema({"$ref": "#/components/schemas/Thing1"}, direction=direction, schemas=web(500, 5))
    limits = LIMITS[direction]
    assert 20 < len(made["$defs"]) <= limits.definitions
    assert sum(1 for _ in nodes(made)) <= limits.parts + limits.definitions
    assert len(msgspec.json.encode(made)) <= limits.length * 1.2
    assert rules(found) == ["D162"]
    assert {f"Thing{n}" for n in range(5, 10)} <= made["$defs"].keys()
    compiled(made)


def test_open_schema_keeps_its_type_also_for_thousands_of_properties() -> None:
    schemas = web(500, 5)
    made, _ = read_schema({"$ref": "#/components/schemas/Thing1"}, schemas=schemas)
    assert any({"type": "object"} in definition["properties"].values() for definition in made["$defs"].values())
    assert schemas == web(500, 5)
    made, found = read_schema({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}})
    assert (made, rules(found)) == ({"type": "object"}, ["D162"])


def test_a_large_schema_without_references_loses_its_innermost_parts() -> None:
    schema: dict[str, Any] = {"type": "string", "description": "x" * 50}
    for _ in range(4):
        schema = {"type": "object", "properties": {f"p{k}": schema for k in range(7)}}
    made, found = read_schema(schema)
    assert rules(found) == ["D162"]
    assert made["properties"]["p0"]["properties"]
    assert len(msgspec.json.encode(made)) <= LIMITS["input"].length
    compiled(made)


def test_references_that_multiply_are_left_open() -> None:
    refs = [{"$ref": f"#/components/schemas/S{n + 1}"} for n in range(18)]
    schemas: dict[str, Any] = {f"S{n}": {"anyOf": [ref, {"items": {}}, {"not": ref}]} for n, ref in enumerate(refs)}
    schemas["S18"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    made, found = read_schema({"$ref": "#/components/schemas/S0"}, schemas=schemas)
    compiled(made)
    assert "D162" in rules(found)


def test_equal_schemas_are_one_object() -> None:
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing1"}}}}
    operation = {"responses": {"200": {"description": "Good.", **content}}}
    made, _ = read(described({f"/{n}": {"get": operation} for n in range(3)}, components={"schemas": web(50, 3)}))
    first, second, _ = (operation.answers[0].schema for operation in made.operations)
    assert first["$defs"] is second["$defs"]


def test_invalid_defaults_are_dropped() -> None:
    part = {"allOf": [{"$ref": "#/components/schemas/Size"}]}
    properties = {"good": {**part, "default": {"beds": 1}}, "bad": {**part, "default": {"beds": "two"}}}
    schema = {"type": "object", "properties": properties}
    size = {"type": "object", "properties": {"beds": {"type": "integer"}}}
    made, found = read_schema(schema, schemas={"Size": size})
    assert "default" in made["properties"]["good"]
    assert "default" not in made["properties"]["bad"]
    assert rules(found) == ["D163"]
