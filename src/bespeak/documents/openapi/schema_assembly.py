"""Self-contained schemas of limited size, for descriptions in which most schemas refer to each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.schema.compile import compile_schema
from bespeak.contract.schema.multiplied import excess
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, nodes
from bespeak.documents.openapi.definition import DEFINITIONS, Definition, names_in
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.references import References
from bespeak.documents.openapi.rules import SCHEMA_CUT, SCHEMA_PART_DROPPED
from bespeak.documents.openapi.schema_conversion import Converter, Direction
from bespeak.documents.openapi.spot import Spot
from bespeak.protocol.fault import Fault


class Limits(NamedTuple):
    """Size limits of one schema."""

    definitions: int
    parts: int
    """Maximum number of subschemas. Lint allows 2,000 in the whole input of an endpoint."""
    length: int
    """Maximum bytes of JSON: large descriptions have thousands of such schemas, and a model reads each one whole."""


LIMITS: Final[Mapping[Direction, Limits]] = {"input": Limits(100, 1_000, 64_000), "output": Limits(60, 500, 32_000)}
"""Limits by direction: an agent must know what it may send, but needs less detail of what it gets."""

_MANY_STEPS: Final = 12
"""Number of references between definitions for one value below which they cannot multiply too far."""


class SchemaReader:
    """The schemas of one description."""

    def __init__(self, references: References, notices: Notices, *, modern: bool) -> None:
        self._notices = notices
        self._converters: dict[Direction, Converter] = {
            "input": Converter(references, notices, "input", modern=modern),
            "output": Converter(references, notices, "output", modern=modern),
        }
        self._done: dict[tuple[Direction, tuple[str, str]], dict[str, Any]] = {}
        self._shared: dict[tuple[Direction, bytes], dict[str, Any]] = {}
        self._cut: dict[tuple[Direction, str, frozenset[str]], dict[str, Any]] = {}

    def read(self, spot: Spot, direction: Direction) -> Mapping[str, Any]:
        """Read the schema at a place, with everything it refers to under `$defs`."""
        key = (direction, spot.key)
        made = self._done.get(key)
        if made is None:
            made = self._done[key] = self.complete(self._converters[direction].convert(spot), spot, direction)
        return made

    def complete(self, schema: dict[str, Any], spot: Spot, direction: Direction) -> dict[str, Any]:
        """Add the needed definitions to a converted schema. Equal results are one object."""
        key = (direction, msgspec.json.encode(schema))
        made = self._shared.get(key)
        if made is None:
            made = self._shared[key] = self._assembled(schema, spot, direction)
        return made

    def _assembled(self, schema: dict[str, Any], spot: Spot, direction: Direction) -> dict[str, Any]:
        converter = self._converters[direction]
        name = schema.get("$ref", "").removeprefix(DEFINITIONS)
        while name:
            # The properties of an input must be at its root, not behind a reference.
            schema = {**converter.definition(name).body, **{key: schema[key] for key in schema if key != "$ref"}}
            name = schema.get("$ref", "").removeprefix(DEFINITIONS)
        root = Definition("", schema)
        limits = LIMITS[direction]
        kept, left = _nearest(root, converter, limits)
        if left:
            message = (
                f"the schema reaches more than {limits.definitions} definitions, {limits.parts:,} parts or "
                f"{limits.length:,} bytes; {len(left)} of its references are left open"
            )
            self._notices.info(SCHEMA_CUT, message, spot, "Describe those that agents need in the endpoint file.")
        opened = {name: _open_schema(converter.definition(name)) for name in left}
        made = _cut(root.body, opened) if left.intersection(root.names) else root.body
        if not kept:
            return _with_fitting_defaults(made, spot, self._notices)
        definitions: dict[str, Any] = {}
        for definition in kept.values():
            away = left.intersection(definition.names)
            if not away:
                definitions[definition.name] = definition.body
                continue
            known = (direction, definition.name, frozenset(away))
            if known not in self._cut:
                self._cut[known] = _cut(definition.body, opened)
            definitions[definition.name] = self._cut[known]
        made = {**made, "$defs": definitions}
        if sum(len(definition.in_place) for definition in kept.values()) > _MANY_STEPS:
            reason = excess(nodes(made))
            if reason is not None:
                self._notices.warning(SCHEMA_CUT, f"the schema is left open: {reason}", spot)
                return {"type": made["type"]} if "type" in made else {}
        return _with_fitting_defaults(made, spot, self._notices)


def _nearest(root: Definition, converter: Converter, limits: Limits) -> tuple[dict[str, Definition], set[str]]:
    """Return the definitions within the limits, those reached in the fewest steps first; and the others' names."""
    kept: dict[str, Definition] = {}
    left: set[str] = set()
    parts, length = root.parts, root.length
    waiting = deque(root.names)
    while waiting:
        name = waiting.popleft()
        if name in kept or name in left:
            continue
        definition = converter.definition(name)
        if (
            len(kept) == limits.definitions
            or parts + definition.parts > limits.parts
            or length + definition.length > limits.length
        ):
            left.add(name)
            continue
        kept[name] = definition
        parts += definition.parts
        length += definition.length
        waiting.extend(definition.names)
    return kept, left


def _open_schema(definition: Definition) -> dict[str, Any]:
    kind = definition.body.get("type")
    return {"type": kind} if kind is not None else {}


def _cut(schema: Any, opened: Mapping[str, dict[str, Any]], *, names: bool = False) -> Any:
    """Replace references to some definitions by open schemas."""
    if isinstance(schema, list):
        return [_cut(item, opened) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if names:
        return {name: _cut(item, opened) for name, item in schema.items()}
    reference = schema.get("$ref")
    name = reference.removeprefix(DEFINITIONS) if isinstance(reference, str) else ""
    made = dict(opened.get(name, {}))
    for key, value in schema.items():
        if key in DATA_KEYWORDS:
            made[key] = value
        elif key != "$ref" or name not in opened:
            made[key] = _cut(value, opened, names=key in NAMING_KEYWORDS)
    return made


def _with_fitting_defaults(schema: dict[str, Any], spot: Spot, notices: Notices) -> dict[str, Any]:
    properties = schema.get("properties", {})
    named = {name: part for name, part in properties.items() if "default" in part}
    wrong = [name for name, part in named.items() if not _takes_default(part, schema)]
    if wrong:
        for name in wrong:
            message = f"the default of {name} does not match its own schema, and is left out"
            notices.warning(SCHEMA_PART_DROPPED, message, spot)
        bare = {name: _without_default(part) if name in wrong else part for name, part in properties.items()}
        schema = {**schema, "properties": bare}
    if "default" in schema and not _takes_default(schema, schema):
        notices.warning(SCHEMA_PART_DROPPED, "the default does not match its own schema, and is left out", spot)
        schema = _without_default(schema)
    return schema


def _takes_default(part: Mapping[str, Any], around: Mapping[str, Any]) -> bool:
    whole = {**part, "$defs": around["$defs"]} if names_in(dict(part)) and "$defs" in around else part
    compiled = compile_schema(whole)
    return not isinstance(compiled, Fault) and compiled.is_valid(part["default"])


def _without_default(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "default"}
