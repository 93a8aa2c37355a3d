"""A short notation for fields: `email`, `limit?:integer`, `invoices[].total:number`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.documents.ai.param_notation import TYPES, parse_param
from bespeak.documents.ai.returns_notation import FORMATS
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.brief import brief

# field = step *( "." step ) [ "?" ] [ ":" type ]      step = name *"[]"
_FIELD: Final = re.compile(r"([^\s.:?,\[\]{}]+(?:\[\])*(?:\.[^\s.:?,\[\]{}]+(?:\[\])*)*)(\?)?(?::(\S+))?")
_STEP: Final = re.compile(r"([^\[]+)((?:\[\])*)")
_LONGEST: Final = 500
_DEEPEST: Final = 16
_MOST: Final = 500
"""Most fields of one list: more than people write, and servers refuse more."""

_PYTHON: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}

Fields = Iterable[str] | Mapping[str, Any]
"""Fields in the notation, types by field in the notation, or a JSON Schema of an object."""


def read_fields(fields: Fields) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields. Raises ConfigError if one cannot be read.

    A mapping with `properties`, or with the type `object`, is a schema and returned as it is. In other mappings, each
    value is a type of the notation, a Python type or a schema.
    """
    if isinstance(fields, str):
        raise ConfigError(f"Fields must be a list, not the string {brief(fields)}; write [{brief(fields)}].")
    if isinstance(fields, Mapping) and (
        isinstance(fields.get("properties"), Mapping) or fields.get("type") == "object"
    ):
        return dict(fields)
    root: dict[str, Any] = {"type": "object", "properties": {}}
    pairs = list(fields.items()) if isinstance(fields, Mapping) else [(text, None) for text in fields]
    if len(pairs) > _MOST:
        raise ConfigError(f"At most {_MOST} fields can be named; got {len(pairs)}.")
    for text, given in pairs:
        path, optional, kind = _split(text)
        named = _PYTHON.get(given, given) if isinstance(given, type) else given
        schema = dict(named) if isinstance(named, Mapping) else read_type(named or kind, text)
        _add(root, path, schema, text, required=not optional)
    return root


def read_type(kind: Any, field: str) -> dict[str, Any]:
    """Return the schema of a type in the notation: a JSON type, a format or `TYPE[]`; None is any value."""
    if kind is None:
        return {}
    read = parse_param(kind) if isinstance(kind, str) else None
    if read is None or not read.schema or read.description:
        known = ", ".join((*TYPES, "object", *FORMATS[:6]))
        raise ConfigError(f"{brief(kind)} is not a valid type of the field {brief(field)}; use one of {known}.")
    return read.schema


def _split(text: Any) -> tuple[list[str], bool, str | None]:
    """Return the steps of a field, whether it is optional, and its type."""
    match = _FIELD.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    steps = match[1].split(".") if match else []
    if match is None or len(steps) > _DEEPEST or text.count("[]") > _DEEPEST:
        raise ConfigError(
            f"{brief(text)} is not a valid field; write it like email, limit?:integer or invoices[].total:number."
        )
    return steps, bool(match[2]), match[3]


def _add(root: dict[str, Any], steps: list[str], schema: dict[str, Any], text: str, *, required: bool) -> None:
    """Add a field to an object schema, with the objects and arrays around it."""
    node = root
    for number, step in enumerate(steps, 1):
        match = _STEP.fullmatch(step)
        assert match is not None
        name, arrays = match[1], match[2].count("[]")
        properties = _open(node, "object", text).setdefault("properties", {})
        is_leaf = number == len(steps)
        if (required or not is_leaf) and name not in node.setdefault("required", []):
            node["required"].append(name)
        node = properties.setdefault(name, {})
        for _ in range(arrays):
            node = _open(node, "array", text).setdefault("items", {})
        if is_leaf and schema and node and node != schema:
            raise ConfigError(f"The field {brief(text)} is named twice, as {_kind(node)} and as {_kind(schema)}.")
    node.update(schema)


def _open(node: dict[str, Any], kind: str, text: str) -> dict[str, Any]:
    if node.setdefault("type", kind) != kind:
        raise ConfigError(f"The field {brief(text)} lies in a field that is named as {_kind(node)}, not as {kind}.")
    return node


def _kind(schema: Mapping[str, Any]) -> str:
    return str(schema.get("format") or schema.get("type") or "any value")
