"""Checking and compiling of JSON Schema 2020-12; a schema is compiled on first use, once per content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonschema_rs
import msgspec

from bespeak.contract.schema.multiplied import excess
from bespeak.contract.schema.reference import REFERENCES
from bespeak.contract.schema.size import is_within
from bespeak.contract.schema.subschemas import MAX_DEPTH, nodes
from bespeak.contract.schema.violation import Violation, shorten
from bespeak.protocol.fault import Fault
from bespeak.text.source.pointer import pointer

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_MAX_REPORTED: Final = 100
"""Limit of reported violations: a value can violate a schema once per element."""

_MOST_PARTS: Final = 1_000
_MOST_CHARACTERS: Final = 65_536
"""Size of a value up to which all violations are listed: the library needs 11 µs each, so seconds for a megabyte."""

_MOST_REFERENCES: Final = 10_000
"""Limit of chained references: the library needs quadratic time for them, a third of a second for this many."""

_LINEAR: Final = jsonschema_rs.RegexOptions()
"""Options for the linear-time engine: a pattern can be slow to compile, never slow to match."""

_UNCHECKED: Final = re.compile(rb'"(?:pattern|\$(?!schema":"%b"))' % re.escape(DIALECT.encode()))
"""Keywords the meta-schema cannot check: patterns, references and anchors."""


class Validator:
    """A usable schema. Values must be as a JSON decoder returns them; others raise ValueError."""

    __slots__ = ("_compiled", "_text", "is_valid")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._compiled: jsonschema_rs.Draft202012Validator | None = None
        self.is_valid: Callable[[object], bool] = self._is_valid

    def violations(self, value: object) -> list[Violation]:
        """List all violations of a value; of a very large one, only the first."""
        found: list[Violation] = []
        if not is_within(value, parts=_MOST_PARTS, characters=_MOST_CHARACTERS):
            try:
                self.compiled().validate(value)
            except jsonschema_rs.ValidationError as first:
                found.append(_violation(first))
            return found
        for error in self.compiled().iter_errors(value):
            found.append(_violation(error))
            if len(found) == _MAX_REPORTED:
                break
        return found

    def compiled(self) -> jsonschema_rs.Draft202012Validator:
        """Compile the schema. This happens on first use: a server may load thousands and use few at first."""
        if self._compiled is None:
            self._compiled = jsonschema_rs.Draft202012Validator(
                msgspec.json.decode(self._text), validate_formats=True, pattern_options=_LINEAR, offline=True
            )
            self.is_valid = self._compiled.is_valid
        return self._compiled

    def _is_valid(self, value: object) -> bool:
        return self.compiled().is_valid(value)


_cache: dict[bytes, Validator] = {}
_CACHE_LIMIT: Final = 65_536


def compile_schema(schema: Mapping[str, Any]) -> Validator | Fault:
    """Return the validator of a schema, or its fault. Equal schemas share one validator."""
    try:
        key = msgspec.json.encode(schema)
        known = _cache.get(key)
        if known is not None:
            return known
        plain = msgspec.json.decode(key)
    except (TypeError, ValueError, RecursionError) as error:
        return Fault(f"the schema is not JSON: {error}")
    fault = _check(plain, key)
    if fault is not None:
        return fault
    validator = Validator(key)
    if _UNCHECKED.search(key) is not None or not jsonschema_rs.meta.is_valid(plain):
        try:
            validator.compiled()
        except jsonschema_rs.ValidationError as error:
            return Fault(shorten(error.message), pointer(error.instance_path))
        except ValueError as error:
            return Fault(shorten(str(error)))
    if len(_cache) < _CACHE_LIMIT:
        _cache[key] = validator
    return validator


def _check(schema: object, text: bytes) -> Fault | None:
    """Check what the compiler misses or reports too late: dialect, depth, references to other documents."""
    if not isinstance(schema, dict):
        return Fault(f"a schema must be an object; got {type(schema).__name__}")
    dialect = schema.get("$schema", DIALECT)
    if dialect not in (DIALECT, DIALECT + "#"):
        return Fault(f"the dialect must be {DIALECT}; got {dialect!r}", "/$schema")
    if b"$ref" not in text and b"$dynamicRef" not in text and text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return None  # the fast path for most schemas: no references, and too short to be deep
    found = list(nodes(schema))
    references = 0
    for at, node in found:
        if len(at) > MAX_DEPTH:
            return Fault(f"the schema is nested more than {MAX_DEPTH} levels deep")
        for name in node.keys() & REFERENCES:
            references += 1
            target = node[name]
            if not isinstance(target, str) or not target.startswith("#"):
                return Fault(
                    f"a {name} must stay inside its schema ('#...'); got {shorten(repr(target))}", pointer((*at, name))
                )
    if references > _MOST_REFERENCES:
        return Fault(f"the schema has more than {_MOST_REFERENCES:,} references")
    too_much = excess(found) if references else None
    return Fault(too_much) if too_much else None


def _violation(error: jsonschema_rs.ValidationError) -> Violation:
    schema_path = list(error.schema_path)
    keyword, message = str(schema_path[-1]) if schema_path else "false", error.message
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.FalseSchema):
        # The library's message names the schema `false`; readers need to know what is not allowed.
        if keyword == "additionalProperties":
            message = "no properties are allowed here"
        else:
            keyword, message = "false", "nothing is allowed here"
    return Violation(pointer(error.instance_path), pointer(schema_path), keyword, shorten(message))
