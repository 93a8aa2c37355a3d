"""Schemas that are complete in themselves and stay small, of descriptions in which everything refers to everything."""

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
    """How much one schema may take."""

    definitions: int
    parts: int
    """Schemas inside it. Lint takes 2,000 in the whole input of an endpoint."""
    length: int
    """Bytes of JSON: a thousand operations have some thousand such schemas, and a model reads each of them whole."""


LIMITS: Final[Mapping[Direction, Limits]] = {"input": Limits(100, 1_000, 64_000), "output": Limits(60, 500, 32_000)}
"""An agent has to know what it may send; of what it gets it needs less."""

_MANY_STEPS: Final = 12
"""References between definitions that judge one value, below which they cannot multiply beyond what is bearable."""


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
        """The schema at a place, with all it refers to under `$defs`."""
        key = (direction, spot.key)
        made = self._done.get(key)
        if made is None:
            made = self._done[key] = self.complete(self._converters[direction].convert(spot), spot, direction)
        return made

    def complete(self, schema: dict[str, Any], spot: Spot, direction: Direction) -> dict[str, Any]:
        """A converted schema with the definitions it needs. Equal ones are one object."""
        key = (direction, msgspec.json.encode(schema))
        made = self._shared.get(key)
        if made is None:
            made = self._shared[key] = self._assembled(schema, spot, direction)
        return made

    def _assembled(self, schema: dict[str, Any], spot: Spot, direction: Direction) -> dict[str, Any]:
        converter = self._converters[direction]
        name = schema.get("$ref", "").removeprefix(DEFINITIONS)
        while name:
            # The properties of an input are looked for at its root, not behind a name.
            schema = {**converter.definition(name).body, **{key: schema[key] for key in schema if key != "$ref"}}
            name = schema.get("$ref", "").removeprefix(DEFINITIONS)
        root = Definition("", schema)
        limits = LIMITS[direction]
        kept, left = _nearest(root, converter, limits)
        if left:
            message = (
                f"the schema reaches more than {limits.definitions} definitions, {limits.parts:,} parts or "
                f"{limits.length:,} bytes; {len(left)} of those it refers to are left open"
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
    """The definitions that fit, those that are reached in the fewest steps first; and those that are left."""
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
    """A schema with some of its references left open."""
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
            message = f"the default of {name} is none that its own schema takes, and is left out"
            notices.warning(SCHEMA_PART_DROPPED, message, spot)
        bare = {name: _without_default(part) if name in wrong else part for name, part in properties.items()}
        schema = {**schema, "properties": bare}
    if "default" in schema and not _takes_default(schema, schema):
        notices.warning(SCHEMA_PART_DROPPED, "the default is none that its own schema takes, and is left out", spot)
        schema = _without_default(schema)
    return schema


def _takes_default(part: Mapping[str, Any], around: Mapping[str, Any]) -> bool:
    whole = {**part, "$defs": around["$defs"]} if names_in(dict(part)) and "$defs" in around else part
    compiled = compile_schema(whole)
    return not isinstance(compiled, Fault) and compiled.is_valid(part["default"])


def _without_default(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "default"}
