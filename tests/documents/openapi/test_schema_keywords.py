"""Valid keywords are kept, others are reported."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.schema_keywords import is_null_free, number, pattern_fault, plain_keywords


def read(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    complaints: list[str] = []
    return plain_keywords(schema, complain=lambda keyword, _: complaints.append(keyword)), complaints


@pytest.mark.parametrize(
    ("schema", "made"),
    [
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
    ],
)
def test_keyword_is_converted_to_2020_12(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert read(schema) == (made, [])


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("type", "thing"),
        ("type", 7),
        ("enum", []),
        ("enum", "a"),
        ("enum", [{"a": None}]),
        ("const", [None]),
        ("enum", list(range(1001))),
        ("multipleOf", 0),
        ("minLength", 1.5),
        ("maxItems", True),
        ("maximum", "much"),
        ("minimum", 10**400),
        ("required", "a"),
        ("pattern", 1),
        ("pattern", "[" * 50),
        ("pattern", "a" * 3000),
    ],
)
def test_invalid_keyword_is_dropped_and_reported(keyword: str, value: Any) -> None:
    assert read({keyword: value}) == ({}, [keyword])


@pytest.mark.parametrize("pattern", ["^[a-z]+$", "\\d{3}", "\\p{L}", ""])
def test_portable_pattern_has_no_fault(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(("given", "value"), [("3", 3), ("1.5", 1.5), (True, None), ("x", None), (2, 2), ([], None)])
def test_a_number_may_be_written_as_a_text(given: Any, value: Any) -> None:
    assert number(given) == value


def test_nested_null_is_found() -> None:
    assert is_null_free({"a": [1, {"b": "c"}]})
    assert not is_null_free({"a": [1, {"b": None}]})
