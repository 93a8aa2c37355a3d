"""Constraints of a parameter, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.ai.param_notation import read_constraint, split


@pytest.mark.parametrize(
    ("text", "kind", "schema"),
    [
        ("min 1", "integer", {"minimum": 1}),
        ("maximum: 2.5", "number", {"maximum": 2.5}),
        (">= 3", "integer", {"minimum": 3}),
        ("at most 9", "integer", {"maximum": 9}),
        ("above 0", "number", {"exclusiveMinimum": 0}),
        ("< 10", "number", {"exclusiveMaximum": 10}),
        ("max 5", "string", {"maxLength": 5}),
        ("max 5", "array", {"maxItems": 5}),
        ("max 5 items", "array", {"maxItems": 5}),
        ("min items 2", "array", {"minItems": 2}),
        ("min length 2", "string", {"minLength": 2}),
        ("maxLength: 20", "string", {"maxLength": 20}),
        ("length 3", "string", {"minLength": 3, "maxLength": 3}),
        ("1..5", "integer", {"minimum": 1, "maximum": 5}),
        ("between 1 and 5", "integer", {"minimum": 1, "maximum": 5}),
        ("multiple of 5", "integer", {"multipleOf": 5}),
        ("default: true", "boolean", {"default": True}),
        ("defaults to en", "string", {"default": "en"}),
        ("default=10", "string", {"default": "10"}),
        ("one of a|b", "string", {"enum": ["a", "b"]}),
        ("1|2|3", "integer", {"enum": [1, 2, 3]}),
        ('"a, b"|c', "string", {"enum": ["a, b", "c"]}),
        ("only x", "string", {"enum": ["x"]}),
        ("uuid", "string", {"format": "uuid"}),
        ("format: date-time", "string", {"format": "date-time"}),
        ("url", "string", {"format": "uri"}),
        ("pattern ^[A-Z]+$", "string", {"pattern": "^[A-Z]+$"}),
        ("unique", "array", {"uniqueItems": True}),
        ("of date", "array", {"items": {"type": "string", "format": "date"}}),
        ("nullable", "string", {"type": ["string", "null"]}),
    ],
)
def test_a_constraint_becomes_a_keyword(text: str, kind: str, schema: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    assert read_constraint(text, kind, found)
    assert found == schema


@pytest.mark.parametrize(
    "text", ["airport code", "2026-11-16", "min", "default", "a|", "max many", "5-1", "of things", "or else", "1e999"]
)
def test_unknown_constraint_changes_nothing(text: str) -> None:
    found: dict[str, Any] = {}
    assert not read_constraint(text, "string", found)
    assert found == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("max -1", "string"),
        ("max 5.5 chars", "string"),
        ("length 1e999", "string"),
        ("min -3 items", "array"),
        ("above 1e999", "number"),
        (f"min -{'9' * 1800}", "number"),
        ("multiple of 0", "number"),
        ("multiple of -1", "number"),
        ("multiple of many", "number"),
        ("pattern (", "string"),
    ],
)
def test_invalid_constraint_changes_nothing(text: str, kind: str) -> None:
    found: dict[str, Any] = {"type": kind}
    assert not read_constraint(text, kind, found)
    assert found == {"type": kind}


def test_separators_count_outside_of_quotes_and_brackets() -> None:
    assert split('a, "b, \\", c", {d, e}, [f, (g, h)], i', ",") == ["a", '"b, \\", c"', "{d, e}", "[f, (g, h)]", "i"]
