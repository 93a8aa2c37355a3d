"""Obvious types are added, and null is accepted without being written."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.schema_keywords import typed, with_null

NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"properties": {}}, "object"),
        ({"required": ["a"]}, "object"),
        ({"items": {}}, "array"),
        ({"type": "string", "properties": {}}, "string"),
        ({"properties": {}, "anyOf": [{}]}, None),
        ({"enum": [1], "items": {}}, None),
        ({"minLength": 1}, None),
    ],
)
def test_type_follows_from_keywords_of_one_type(schema: dict[str, Any], kind: str | None) -> None:
    assert typed(schema).get("type") == kind


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({}, {}),
        ({"minLength": 1}, {"minLength": 1}),
        ({"$ref": "#/$defs/A", "title": "t"}, {"title": "t", "anyOf": [{"$ref": "#/$defs/A"}, NULL]}),
        ({"type": "string", "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"anyOf": [{"type": "string"}, NULL]}, {"anyOf": [{"type": "string"}, NULL]}),
    ],
)
def test_a_nullable_schema_takes_null_as_well(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert with_null(schema, nullable=True) == made


@pytest.mark.parametrize("nullable", [True, False])
def test_null_among_the_values_is_an_alternative(nullable: bool) -> None:
    assert with_null({"enum": ["a", None]}, nullable=nullable) == {"anyOf": [{"enum": ["a"]}, NULL]}
    assert with_null({"enum": [None], "title": "t"}, nullable=nullable) == {"title": "t", "type": "null"}


def test_schema_that_is_not_nullable_stays_unchanged() -> None:
    assert with_null({"type": "string"}, nullable=False) == {"type": "string"}
