"""Check a JSON Schema 2020-12 document and compile it, once for each content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
import msgspec

from bespeak.schema.violation import Violation, pointer

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_MAX_REPORTED: Final = 100
"""A value can break a schema in as many ways as it has elements; nobody reads more than these."""

_REGEX_LIMITS: Final = jsonschema_rs.RegexOptions()
"""The linear-time engine: a pattern can be slow to write, never slow to match."""


class Validator:
    """A compiled schema."""

    __slots__ = ("_compiled", "is_valid")

    def __init__(self, compiled: jsonschema_rs.Draft202012Validator) -> None:
        self._compiled = compiled
        self.is_valid = compiled.is_valid

    def violations(self, value: object) -> list[Violation]:
        """Everything that is wrong with a value, not only the first thing."""
        found: list[Violation] = []
        for error in self._compiled.iter_errors(value):
            schema_path = list(error.schema_path)
            keyword = str(schema_path[-1]) if schema_path else "false"
            found.append(Violation(pointer(error.instance_path), pointer(schema_path), keyword, error.message))
            if len(found) == _MAX_REPORTED:
                break
        return found


class SchemaFault(msgspec.Struct, frozen=True):
    """Why a document is not a usable schema."""

    pointer: str
    message: str


_cache: dict[bytes, Validator] = {}
_CACHE_LIMIT: Final = 65_536


def compile_schema(schema: Mapping[str, Any]) -> Validator | SchemaFault:
    """The validator of a schema, or what is wrong with it. Equal schemas share one validator."""
    try:
        key = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        return SchemaFault("", f"the schema is not JSON: {error}")
    known = _cache.get(key)
    if known is not None:
        return known
    plain = msgspec.json.decode(key)
    fault = _check(plain)
    if fault is not None:
        return fault
    try:
        compiled = jsonschema_rs.Draft202012Validator(plain, validate_formats=True, pattern_options=_REGEX_LIMITS)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return SchemaFault("", _first_line(error))
    validator = Validator(compiled)
    if len(_cache) < _CACHE_LIMIT:
        _cache[key] = validator
    return validator


def _check(schema: object) -> SchemaFault | None:
    if not isinstance(schema, dict):
        return SchemaFault("", f"a schema is an object, not {type(schema).__name__}")
    dialect = schema.get("$schema", DIALECT)
    if dialect not in (DIALECT, DIALECT + "#"):
        return SchemaFault("/$schema", f"the dialect is {DIALECT}, not {dialect!r}")
    outside = _outside_reference(schema)
    if outside is not None:
        return SchemaFault(outside[0], f"a $ref stays inside its schema ('#...'), not {outside[1]!r}")
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": DIALECT})
    except jsonschema_rs.ValidationError as error:
        return SchemaFault(pointer(error.instance_path), error.message)
    return None


def _outside_reference(node: object, at: tuple[str | int, ...] = ()) -> tuple[str, object] | None:
    """The first reference that leaves the document: resolving it would read files or the network."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("$ref", "$dynamicRef") and not (isinstance(value, str) and value.startswith("#")):
                return pointer((*at, name)), value
            found = _outside_reference(value, (*at, name))
            if found is not None:
                return found
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found = _outside_reference(value, (*at, index))
            if found is not None:
                return found
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
