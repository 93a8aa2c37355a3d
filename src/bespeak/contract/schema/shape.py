"""Summary of a JSON Schema for one-line descriptions: one type, and the fields of an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bespeak.contract.schema.reference import resolve

_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_DEEPEST: Final = 5
"""Limit of nested alternatives and chained references."""
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_COMPOUND: Final = frozenset({"allOf", *_ALTERNATIVES})
_INDIRECT: Final = frozenset({"$ref", "allOf"})
"""Keywords that may add to the type; a schema with a type and none of them, as nearly all, is complete."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a schema."""

    kind: str
    """One of the six JSON types other than null; empty if the schema does not name one."""
    schema: Mapping[str, Any]
    """Effective keywords, with references resolved; of alternatives, only those of a single one are included."""
    nullable: bool = False
    others: tuple[str, ...] = ()
    """Further types, if there are several."""


_NULL_SHAPE: Final = Shape("", {"type": "null"}, nullable=True)


class Field(NamedTuple):
    """A field of an object."""

    name: str
    schema: Any
    required: bool


def shape_of(schema: object, root: Mapping[str, Any], depth: int = 0) -> Shape:
    """Return the shape of a schema; `root` is the document that resolves its references."""
    if type(schema) is dict and type(schema.get("type")) is str and _INDIRECT.isdisjoint(schema):
        return _NULL_SHAPE if schema["type"] == "null" else Shape(schema["type"], schema)
    found = resolve(schema, root, most=_DEEPEST)
    if depth > _DEEPEST:
        return Shape("", found)
    for part in _parts(found, "allOf"):
        found = {**shape_of(part, root, depth + 1).schema, **found}
    kinds, nullable = _declared_kinds(found)
    if not kinds:
        found, kinds, null = _of_alternatives(found, root, depth)
        nullable = nullable or null
    return Shape(kinds[0] if kinds else "", found, nullable, tuple(kinds[1:]))


def fields_of(shape: Shape, root: Mapping[str, Any]) -> list[Field]:
    """Return the fields of an object: its own, and those of its combined schemas."""
    return list(_fields(shape.schema, root, 0).values())


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Field]:
    required, properties = schema.get("required"), schema.get("properties")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    found = {} if _COMPOUND.isdisjoint(schema) or depth > _DEEPEST else _inherited(schema, root, depth)
    for name in needed & found.keys():
        found[name] = found[name]._replace(required=True)
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        known = found.get(name)
        found[name] = Field(name, value, name in needed or (known is not None and known.required))
    return found


def _inherited(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Field]:
    """Return the fields of an object's combined schemas; a field of alternatives is required if all of them have it."""
    found: dict[str, Field] = {}
    for keyword in _ALTERNATIVES:
        branches = [_fields(resolve(part, root, most=_DEEPEST), root, depth + 1) for part in _parts(schema, keyword)]
        for branch in branches:
            for name, field in branch.items():
                everywhere = all(name in other and other[name].required for other in branches)
                found.setdefault(name, field._replace(required=everywhere))
    for part in _parts(schema, "allOf"):
        found |= _fields(resolve(part, root, most=_DEEPEST), root, depth + 1)
    return found


def _of_alternatives(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> tuple[Mapping[str, Any], list[str], bool]:
    """Return the schema merged with its only alternative other than null, else the types of the alternatives."""
    options = [part for keyword in _ALTERNATIVES for part in _parts(schema, keyword)]
    shapes = [shape_of(option, root, depth + 1) for option in options if not _is_null(option)]
    nullable = len(shapes) < len(options) or any(shape.nullable for shape in shapes)
    if len(shapes) == 1:
        own = {key: value for key, value in schema.items() if key not in _ALTERNATIVES}
        only = shapes[0]
        return {**only.schema, **own}, [only.kind, *only.others] if only.kind else [], nullable
    if all(shape.kind for shape in shapes):
        kinds = dict.fromkeys(kind for shape in shapes for kind in (shape.kind, *shape.others))
        return schema, list(kinds), nullable
    return schema, [], nullable


def _declared_kinds(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the types that a schema names, or that its values and keywords imply."""
    kind = schema.get("type")
    named = [kind] if isinstance(kind, str) else [each for each in kind if isinstance(each, str)] if kind else []
    if not named:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        named = [_NAMES.get(type(value), "null") for value in values] if isinstance(values, list) else []
    if not named:
        named = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    kinds = list(dict.fromkeys(named))
    return [each for each in kinds if each != "null"], "null" in kinds


def _parts(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"
