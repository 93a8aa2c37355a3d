"""Definitions of several schemas in one."""

from __future__ import annotations

from bespeak.documents.adoption.sanitizer import Definitions, names_in


def test_definitions_move_to_the_combined_schema_and_equal_ones_are_stored_once() -> None:
    definitions = Definitions()
    assert definitions.adopt({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}) == {"$ref": "#/$defs/A"}
    assert definitions.found == {"A": {"type": "string"}}
    definitions.adopt({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}})
    assert list(definitions.found) == ["A"]


def test_conflicting_definition_is_renamed_and_references_follow() -> None:
    definitions = Definitions()
    definitions.adopt({"$defs": {"A": {"type": "string"}}})
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}
    adopted = definitions.adopt({"items": [{"$ref": "#/$defs/A"}], "$defs": {"A": tree}})
    assert adopted == {"items": [{"$ref": "#/$defs/A_2"}]}
    assert definitions.found["A_2"]["properties"]["next"] == {"$ref": "#/$defs/A_2"}


def test_names_and_data_are_not_references() -> None:
    definitions = Definitions()
    definitions.adopt({"$defs": {"A": True}})
    schema = {
        "properties": {"$ref": {"type": "string"}},
        "const": {"$ref": "#/$defs/A"},
        "$defs": {"A": {"type": "null"}},
    }
    adopted = definitions.adopt(schema)
    assert adopted["const"] == {"$ref": "#/$defs/A"}
    assert adopted["properties"] == {"$ref": {"type": "string"}}


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
