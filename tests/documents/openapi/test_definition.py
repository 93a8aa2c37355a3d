"""A definition has a size and its references."""

from __future__ import annotations

from bespeak.documents.adoption.definitions import Definition, names_in


def test_references_are_named_nearest_first_and_once() -> None:
    schema = {
        "properties": {
            "deep": {"items": {"items": {"$ref": "#/$defs/Far"}}},
            "a": {"$ref": "#/$defs/A"},
            "b": {"$ref": "#/$defs/B"},
            "again": {"$ref": "#/$defs/A"},
            "data": {"enum": [{"$ref": "#/$defs/Nothing"}]},
        }
    }
    assert names_in(schema) == ("A", "B", "Far")


def test_parts_are_schemas_and_length_is_that_of_json() -> None:
    definition = Definition("Room", {"properties": {"a": {"type": "string"}}})
    assert (definition.parts, definition.length, definition.names) == (2, 38, ())
