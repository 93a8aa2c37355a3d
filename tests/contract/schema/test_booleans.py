"""Boolean schemas as objects."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.mcp_tool import without_booleans

NEVER: dict[str, Any] = {"not": {}}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": NEVER}}),
        ({"items": True, "not": False}, {"items": {}, "not": NEVER}),
        ({"anyOf": [True, {"items": False}]}, {"anyOf": [{}, {"items": NEVER}]}),
        ({"$defs": {"a": {"properties": {"b": True}}}}, {"$defs": {"a": {"properties": {"b": {}}}}}),
        ({"additionalProperties": {"items": True}}, {"additionalProperties": {"items": {}}}),
    ],
)
def test_a_boolean_schema_becomes_an_object_that_means_the_same(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert without_booleans(schema) == made


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": False, "unevaluatedProperties": False, "unevaluatedItems": True},
        {"enum": [True, False], "const": True, "default": {"items": True}, "examples": [True]},
        {"uniqueItems": True, "deprecated": True, "readOnly": False, "x-nullable": True},
        {"type": ["string", "null"], "required": ["a"]},
    ],
)
def test_booleans_that_are_not_schemas_stay(schema: dict[str, Any]) -> None:
    assert without_booleans(schema) == schema
