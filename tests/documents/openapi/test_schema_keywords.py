"""Valid keywords are kept, others are reported."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.openapi.schema_keywords import (
    is_null_free,
    merge_objects,
    number,
    opened,
    pattern_fault,
    plain_keywords,
    typed,
    with_null,
)


def read(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    complaints: list[str] = []
    return plain_keywords(schema, complain=lambda keyword, _: complaints.append(keyword)), complaints


@rows(
    "schema, made",
    ({"type": "file"}, {"type": "string", "contentEncoding": "base64"}),
    ({"type": ["string", "string", None]}, {"type": ["string", "null"]}),
    ({"type": "Integer", "format": "int32"}, {"type": "integer"}),
    ({"type": "string", "format": "password"}, {"type": "string"}),
    ({"type": "string", "format": "url"}, {"type": "string", "format": "uri"}),
    ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    ({"exclusiveMinimum": True}, {}),
    ({"maximum": 1 << 70}, {"maximum": float(1 << 70)}),
    ({"enum": ["a", "a", 1, True, 1.0, None]}, {"enum": ["a", 1, True, None]}),
    ({"const": None}, {"type": "null"}),
    ({"required": ["a", "a", 1]}, {"required": ["a"]}),
    ({"title": 1, "description": ["a"], "deprecated": "yes"}, {}),
    ({"minLength": None, "pattern": "^a$"}, {"pattern": "^a$"}),
    ({"dependentRequired": {"a": ["b"], "c": 1}}, {"dependentRequired": {"a": ["b"]}}),
)
def test_keyword_is_converted_to_2020_12(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert read(schema) == (made, [])


@rows(
    "keyword, value",
    *(("type", value) for value in ("thing", 7)),
    *(("enum", value) for value in ([], "a", [{"a": None}], list(range(1001)))),
    *(("pattern", value) for value in (1, "[" * 50, "a" * 3000)),
    *(("const", [None]), ("multipleOf", 0), ("minLength", 1.5), ("maxItems", True)),
    *(("maximum", "much"), ("minimum", 10**400), ("required", "a")),
)
def test_invalid_keyword_is_dropped_and_reported(keyword: str, value: Any) -> None:
    assert read({keyword: value}) == ({}, [keyword])


@pytest.mark.parametrize("pattern", ["^[a-z]+$", "\\d{3}", "\\p{L}", ""])
def test_portable_pattern_has_no_fault(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(("given", "value"), [("3", 3), ("1.5", 1.5), (True, None), ("x", None), (2, 2), ([], None)])
def test_a_number_may_be_written_as_a_text(given: Any, value: Any) -> None:
    assert number(given) == value


def test_nested_null_is_found_and_an_opened_part_loses_only_its_closing_keyword() -> None:
    assert is_null_free({"a": [1, {"b": "c"}]})
    assert not is_null_free({"a": [1, {"b": None}]})
    assert opened({**A, "additionalProperties": False}) == A
    assert opened({**A, "additionalProperties": {}}) == {**A, "additionalProperties": {}}


A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B: dict[str, Any] = {"properties": {"b": {"type": "integer"}}, "required": ["b", "a"]}


def test_properties_and_requirements_are_those_of_all_parts() -> None:
    assert merge_objects([{"title": "Both"}, A, {**B, "title": "B"}]) == {
        "title": "Both",
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }


def test_one_closed_part_closes_the_whole_and_equal_additional_properties_are_kept() -> None:
    assert merge_objects([{**A, "additionalProperties": False}, B])["additionalProperties"] is False
    text = {"additionalProperties": {"type": "string"}}
    merged = merge_objects([{**A, **text}, {**B, **text}])
    assert merged["additionalProperties"] == {"type": "string"}
    assert merge_objects([{**A, **text}, {**B, "additionalProperties": {"type": "integer"}}]) is None


@pytest.mark.parametrize(
    "part", [{"$ref": "#/$defs/X"}, {"anyOf": [{}]}, {"type": "string"}, {"type": ["object", "null"]}]
)
def test_parts_with_other_keywords_are_not_merged(part: dict[str, Any]) -> None:
    assert merge_objects([A, part]) is None


@rows(
    "one, other, both",
    ({"type": "string"}, {"type": "string"}, {"type": "string"}),
    ({"type": "string"}, {"description": "A."}, {"description": "A.", "type": "string"}),
    ({"description": "A."}, {"type": "string"}, {"description": "A.", "type": "string"}),
    ({"type": "string", "title": "x"}, {"type": "string"}, {"type": "string", "title": "x"}),
    ({"type": "string"}, {"minLength": 1}, {"allOf": [{"type": "string"}, {"minLength": 1}]}),
)
def test_property_of_two_parts_must_match_both(one: dict[str, Any], other: dict[str, Any], both: Any) -> None:
    merged = merge_objects([{"properties": {"p": one}}, {"properties": {"p": other}}])
    assert merged["properties"]["p"] == both


NULL = {"type": "null"}


@rows(
    "schema, kind",
    ({"properties": {}}, "object"),
    ({"required": ["a"]}, "object"),
    ({"items": {}}, "array"),
    ({"type": "string", "properties": {}}, "string"),
    ({"properties": {}, "anyOf": [{}]}, None),
    ({"enum": [1], "items": {}}, None),
    ({"minLength": 1}, None),
)
def test_type_follows_from_keywords_of_one_type(schema: dict[str, Any], kind: str | None) -> None:
    assert typed(schema).get("type") == kind


@rows(
    "schema, made",
    ({"type": "string"}, {"type": ["string", "null"]}),
    ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ({}, {}),
    ({"minLength": 1}, {"minLength": 1}),
    ({"$ref": "#/$defs/A", "title": "t"}, {"title": "t", "anyOf": [{"$ref": "#/$defs/A"}, NULL]}),
    ({"type": "string", "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
    ({"type": ["string", "null"], "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
    ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, NULL]}),
    ({"anyOf": [{"type": "string"}, NULL]}, {"anyOf": [{"type": "string"}, NULL]}),
)
def test_a_nullable_schema_takes_null_as_well(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert with_null(schema, nullable=True) == made


@pytest.mark.parametrize("nullable", [True, False])
def test_null_among_the_values_is_an_alternative(nullable: bool) -> None:
    assert with_null({"enum": ["a", None]}, nullable=nullable) == {"anyOf": [{"enum": ["a"]}, NULL]}
    assert with_null({"enum": [None], "title": "t"}, nullable=nullable) == {"title": "t", "type": "null"}
    assert with_null({"type": "string"}, nullable=False) == {"type": "string"}
