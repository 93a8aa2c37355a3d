"""The types and listed values of a schema as comparable sets."""

from __future__ import annotations

from typing import Any, Final

from bespeak.checks.evolution.change import canonical
from bespeak.checks.evolution.schema_reference import Schema

_ALL: Final = frozenset({"null", "boolean", "object", "array", "integer", "fraction", "string"})
"""All kinds of value. Every number is an integer or has a fraction, so `integer` is part of `number`."""


def type_set(schema: Schema) -> frozenset[str]:
    """Return the kinds of value a schema allows by its `type` or else by its listed values."""
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named
    if isinstance(names, list):
        # Other people's schemas: what stands in the list need not be a text.
        found = frozenset(name for name in names if isinstance(name, str))
        return (found | {"integer", "fraction"} if "number" in found else found) & _ALL
    values = value_texts(schema)
    return _ALL if values is None else frozenset(_type_of(value) for value in values.values())


def named_types(types: frozenset[str]) -> str:
    """Return the kinds as JSON Schema type names."""
    if types == _ALL:
        return "any"
    names = set(types)
    if "fraction" in names:
        names = names - {"fraction", "integer"} | {"number"}
    return " or ".join(sorted(names)) or "nothing"


def value_texts(schema: Schema) -> dict[str, Any] | None:
    """Return the values of `enum` or `const` by canonical text, or None if the schema lists none."""
    if "const" in schema:
        return {canonical(schema["const"]): schema["const"]}
    values = schema.get("enum")
    return {canonical(value): value for value in values} if isinstance(values, list) else None


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
