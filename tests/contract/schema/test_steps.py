"""Steps from one subschema to the next."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.subschemas import Steps, nodes

TARGET = {"type": "string", "$anchor": "here"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a"},
        {"$ref": "#here"},
        {"$dynamicRef": "#here"},
        {"$ref": "#/%24defs/a"},
        {"allOf": [TARGET]},
        {"anyOf": [TARGET]},
        {"oneOf": [TARGET]},
        {"if": TARGET},
        {"not": TARGET},
        {"dependentSchemas": {"b": TARGET}},
    ],
)
def test_step_leads_to_schemas_of_the_same_value(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"a": TARGET}}
    assert Steps(list(nodes(whole))).of(whole) == [TARGET]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/missing"},
        {"$ref": "#/$defs/a/0/1"},
        {"$ref": "https://example.com/x"},
        {"$ref": 5},
        {"allOf": [True]},
        {"properties": {"a": TARGET}, "items": TARGET},
    ],
)
def test_parts_of_the_value_and_dangling_references_are_not_steps(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"a": TARGET}}
    assert Steps(list(nodes(whole))).of(whole) == []


def test_a_reference_inside_a_resource_starts_there() -> None:
    inner: dict[str, Any] = {"$id": "urn:inner", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}
    whole = {"properties": {"x": inner}, "$defs": {"a": TARGET}}
    steps = Steps(list(nodes(whole)))
    assert steps.of(inner) == [{"type": "null"}]
    assert sum(1 for _ in steps.all()) == 4
