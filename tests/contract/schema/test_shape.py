"""Summary of a schema: its type, and the fields of an object."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.shape import fields_of, shape_of


@pytest.mark.parametrize(
    ("schema", "kind", "nullable", "others"),
    [
        ({"type": "string"}, "string", False, ()),
        ({"type": ["integer", "null"]}, "integer", True, ()),
        ({"type": ["integer", "string"]}, "integer", False, ("string",)),
        ({"enum": ["a", "b", None]}, "string", True, ()),
        ({"const": 3}, "integer", False, ()),
        ({"properties": {}}, "object", False, ()),
        ({"items": {}}, "array", False, ()),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number", True, ()),
        ({"oneOf": [{"type": "number"}, {"type": "boolean"}]}, "number", False, ("boolean",)),
        ({"oneOf": [{"type": "number"}, {}]}, "", False, ()),
        ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, "string", False, ()),
        ({"$ref": "#/$defs/a"}, "boolean", False, ()),
        ({"$ref": "#/$defs/loop"}, "", False, ()),
        ({"$ref": "#/nowhere"}, "", False, ()),
        ({"$ref": "https://elsewhere.example/schema"}, "", False, ()),
        ({}, "", False, ()),
        (True, "", False, ()),
    ],
)
def test_the_type_of_a_schema_is_found(schema: Any, kind: str, nullable: bool, others: tuple[str, ...]) -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/b~1c"}, "b/c": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}}}
    shape = shape_of(schema, root)
    assert (shape.kind, shape.nullable, shape.others) == (kind, nullable, others)


def test_keywords_beside_a_reference_override_its_target() -> None:
    root = {"$defs": {"day": {"type": "string", "description": "A day."}}}
    shape = shape_of({"$ref": "#/$defs/day", "description": "The day of arrival."}, root)
    assert shape.schema == {"type": "string", "description": "The day of arrival."}


def test_only_alternative_beside_null_is_used() -> None:
    shape = shape_of({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}, {})
    assert shape.schema == {"type": "integer", "minimum": 1, "default": None}


def test_fields_come_from_all_parts_and_are_required_where_every_alternative_requires_them() -> None:
    text = {"type": "string"}
    schema = {
        "allOf": [{"$ref": "#/$defs/base"}],
        "oneOf": [
            {"properties": {"card": text, "name": text}, "required": ["card", "name"]},
            {"properties": {"iban": text, "name": text}, "required": ["iban", "name"]},
        ],
        "properties": {"note": text},
        "required": ["note", "id"],
    }
    root = {"$defs": {"base": {"properties": {"id": text, "kept": text}, "required": ["kept"]}}}
    found = {field.name: field.required for field in fields_of(shape_of(schema, root), root)}
    assert found == {"card": False, "name": True, "iban": False, "id": True, "kept": True, "note": True}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_recursive_schema_ends(keyword: str) -> None:
    root: dict[str, Any] = {"$defs": {"tree": {keyword: [{"$ref": "#/$defs/tree"}, {"properties": {"leaf": {}}}]}}}
    shape = shape_of({"$ref": "#/$defs/tree"}, root)
    assert [field.name for field in fields_of(shape, root)] == ["leaf"]
