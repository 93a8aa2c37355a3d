"""References to any place of a schema, as references to definitions."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.plain_form import TooComplexError, hoist


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"$defs": {"A": {"type": "string"}}, "items": {"$ref": "#/$defs/A"}}, "A"),
        ({"definitions": {"A": {"type": "string"}}, "items": {"$ref": "#/definitions/A"}}, "A"),
        ({"properties": {"a/b c": {"type": "string"}}, "items": {"$ref": "#/properties/a~1b%20c"}}, "a_b_c"),
        ({"$defs": {"A": {"$anchor": "x", "type": "string"}}, "items": {"$ref": "#x"}}, "A"),
        ({"$defs": {"A": {"$dynamicAnchor": "x", "type": "string"}}, "items": {"$dynamicRef": "#x"}}, "A"),
    ],
)
def test_a_target_becomes_a_definition_with_a_plain_name(schema: dict[str, Any], name: str) -> None:
    made = hoist(schema)
    assert made.root["items"] == {"$ref": f"#/$defs/{name}"}
    assert made.definitions == {name: {"type": "string"}}


def test_the_whole_schema_can_be_a_target() -> None:
    made = hoist({"type": "object", "properties": {"below": {"$ref": "#"}}})
    assert made.definitions["root"]["properties"] == {"below": {"$ref": "#/$defs/root"}}


def test_targets_with_the_same_last_name_have_different_definitions() -> None:
    parts = {"$defs": {"A": {"type": "string"}}, "definitions": {"A": {"type": "integer"}}}
    made = hoist({**parts, "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/definitions/A"}]})
    assert made.definitions == {"A": {"type": "string"}, "A_2": {"type": "integer"}}


@pytest.mark.parametrize(
    ("reference", "found"), [("#/$defs/No", {}), ("#/$defs/True", {}), ("#/$defs/False", {"not": {}})]
)
def test_a_missing_or_boolean_target_is_an_object(reference: str, found: dict[str, Any]) -> None:
    made = hoist({"$defs": {"True": True, "False": False}, "items": {"$ref": reference}})
    assert list(made.definitions.values()) == [found]


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"items": schema}
    with pytest.raises(TooComplexError):
        hoist(schema)
