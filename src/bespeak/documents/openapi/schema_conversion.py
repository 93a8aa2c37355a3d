"""Conversion of OpenAPI 2.0, 3.0 and 3.1 schemas to self-contained JSON Schemas (2020-12) of limited size."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import msgspec

from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, is_closed, nodes
from bespeak.contract.schema.validation import compile_schema, excess
from bespeak.documents.adoption.sanitizer import DEFINITIONS, cut_part, names_in
from bespeak.documents.openapi.document_text import Notices, RefResolver, Spot
from bespeak.documents.openapi.schema_keywords import (
    WORDS,
    finished,
    merge_objects,
    opened,
    pattern_fault,
    plain_keywords,
    with_null,
)
from bespeak.documents.rules import BROKEN_REFERENCE, SCHEMA_CUT, SCHEMA_PART_DROPPED
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.identifiers import unused
from bespeak.text.source.pointer import unescaped

Direction = Literal["input", "output"]
"""Direction of a schema: read-only properties are not part of an input, write-only ones not of an output."""
MAX_LEVELS: Final = 32  # maximum depth of a definition, in steps of a pointer; lint allows 40 for the whole input
MAX_PARTS: Final = 1_000  # maximum number of subschemas in one definition; lint allows 2,000 in the whole input
MAX_LENGTH: Final = 64_000  # maximum bytes of JSON in one definition
_MOST_NESTED: Final = 60  # maximum nesting during conversion, including `allOf` of other definitions
_MOST_IN_PLACE: Final = 150  # maximum number of definitions that apply to one value
_NESTING: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "properties", "patternProperties", "items", "prefixItems", "additionalProperties"}
    | {"not", "if", "then"}
)
_OF_ARRAYS: Final = frozenset({"items", "prefixItems", "contains", "unevaluatedItems"})
_OF_OBJECTS: Final = frozenset(
    {"properties", "required", "additionalProperties", "unevaluatedProperties", "propertyNames", "patternProperties"}
    | {"dependentSchemas"}
)
_OF_CHOICES: Final = frozenset({"anyOf", "oneOf", "not", "if", "then", "else"})
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_INVISIBLE: Final[Mapping[Direction, str]] = {"input": "readOnly", "output": "writeOnly"}
_MOST_INLINE: Final = 12  # maximum number of enum values to write in place instead of under a name


@dataclass
class Definition:
    name: str
    body: dict[str, Any]
    in_place: tuple[str, ...] = ()  # definitions that apply to the same value as this one, repeated for each reference

    @cached_property
    def names(self) -> tuple[str, ...]:
        return names_in(self.body)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Number of schemas in it, and its length as JSON in bytes."""
        return sum(1 for _ in nodes(self.body)), len(msgspec.json.encode(self.body))


@dataclass(slots=True)
class _Position:
    spot: Spot
    levels: int
    chain: tuple[str, ...] = ()  # definitions that led here and apply to the same value
    reached: list[str] = field(default_factory=list)
    """Definitions that apply to the same value as the one being converted; collected during conversion."""

    def down(self, spot: Spot, steps: int) -> _Position:
        """Move to a part of the value, to which nothing that led here applies."""
        return _Position(spot, self.levels + steps)

    def beside(self, spot: Spot, steps: int) -> _Position:
        """Move to another schema for the same value."""
        return _Position(spot, self.levels + steps, self.chain, self.reached)


class Converter:
    """Converts the schemas of one description for one direction."""

    def __init__(self, references: RefResolver, notices: Notices, direction: Direction, *, modern: bool) -> None:
        self._references = references
        self._notices = notices
        self._hidden = _INVISIBLE[direction]
        self._modern = modern  # True if keywords beside a `$ref` count: from 3.1 on
        self._names: dict[tuple[str, str], str] = {}
        self._spots: dict[str, Spot] = {}
        self._made: dict[str, Definition] = {}
        self._active: set[str] = set()
        self._nested = 0

    def convert(self, spot: Spot) -> Definition:
        """Convert the schema at a place; its references point to separate definitions."""
        return self._fitting(self._schema(_Position(spot, 0)), spot)

    def definition(self, name: str) -> Definition:
        return self._define(name, ())

    def _fitting(self, schema: dict[str, Any], spot: Spot) -> Definition:
        """Cut the innermost levels of a schema until it is within the limits."""
        whole = Definition("", schema)
        parts, length = whole.size
        if parts <= MAX_PARTS and length <= MAX_LENGTH:
            return whole
        said = f"the schema has {parts:,} parts and {length:,} bytes"
        for levels in range(24, 0, -2):
            made = Definition("", cut_part(schema, levels, ("type", "description")))
            if made.size[0] <= MAX_PARTS and made.size[1] <= MAX_LENGTH:
                self._notices.info(SCHEMA_CUT, f"{said}; the innermost are left open", spot)
                return made
        self._notices.warning(SCHEMA_CUT, f"{said}, and is left open", spot)
        return Definition("", {"type": schema["type"]} if "type" in schema else {})

    def _define(self, name: str, chain: tuple[str, ...]) -> Definition:
        if (made := self._made.get(name)) is None:
            position = _Position(self._spots[name], 2, (*chain, name))
            self._active.add(name)
            fitting = self._fitting(self._schema(position), position.spot)
            self._active.discard(name)
            made = self._made[name] = Definition(name, fitting.body, tuple(position.reached))
        return made

    def _schema(self, here: _Position) -> dict[str, Any]:
        value = here.spot.value
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, dict):
            message = f"a schema is {brief(value)}, so any value is accepted"
            self._notices.warning(SCHEMA_PART_DROPPED, message, here.spot)
            return {}
        if here.levels > MAX_LEVELS or self._nested >= _MOST_NESTED:
            self._notices.warning(SCHEMA_CUT, "a schema is nested too deeply; deeper parts are left open", here.spot)
            return {}
        self._nested += 1
        try:
            return self._reference(here) if isinstance(value.get("$ref"), str) else self._keywords(here)
        finally:
            self._nested -= 1

    def _reference(self, here: _Position) -> dict[str, Any]:
        target = self._references.target(here.spot)
        target = target and self._references.follow(target, alone=self._modern)
        beside = {name: item for name, item in here.spot.value.items() if name != "$ref"} if self._modern else {}
        if target is None:
            return self._keywords(here) if beside else {}
        if _is_leaf(target.value):
            made = self._schema(here.beside(target, 0))
        else:
            name = self._name(target)
            if self._leads_back(name, here.chain):
                message = f"{brief(here.spot.value['$ref'])} is circular: it applies to the same value again"
                self._notices.warning(BROKEN_REFERENCE, message, here.spot, "Put a property or an item between them.")
                made = {}
            else:
                here.reached.append(name)
                made = {"$ref": f"{DEFINITIONS}{name}"}
        if beside:
            added = self._keywords(here)
            if added.keys() <= WORDS or made.keys() <= {"$ref"}:
                made = {**made, **added}
            else:
                made = {**added, "allOf": [made, *added.get("allOf", ())]}
        # In 3.0 keywords beside a reference are ignored, but authors who write `nullable` there mean it.
        return with_null(made, nullable=_is_nullable(here.spot))

    def _leads_back(self, name: str, chain: tuple[str, ...]) -> bool:
        """Return True if a definition, itself or through others, applies to the value that led to it."""
        if not chain:
            return False
        if name not in self._made and name not in self._active:
            self._define(name, chain)
        waiting, seen = [name], {name}
        while waiting:
            here = waiting.pop()
            if here in chain:
                return True
            known = self._made.get(here)
            for other in known.in_place if known is not None else ():
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
            if len(seen) > _MOST_IN_PLACE:
                return True  # treated the same: too many for a validator
        return False

    def _name(self, target: Spot) -> str:
        if (name := self._names.get(target.key)) is None:
            last = unescaped(target.at.rpartition("/")[2]) or target.document.name.rpartition("/")[2].partition(".")[0]
            wanted = _NO_NAME.sub("_", last).strip("_.-")[:64] or "Schema"
            if wanted.isdecimal():
                wanted = f"Schema_{wanted}"
            name = self._names[target.key] = unused(wanted, self._spots)
            self._spots[name] = target
        return name

    def _keywords(self, here: _Position) -> dict[str, Any]:
        spot = here.spot
        schema: dict[str, Any] = spot.value

        def complain(keyword: str, reason: str) -> None:
            self._notices.warning(SCHEMA_PART_DROPPED, f"`{keyword}` {reason}, and is left out", spot.below(keyword))

        made = plain_keywords(schema, complain=complain)
        if not _OF_ARRAYS.isdisjoint(schema):
            self._arrays(here, made)
        hidden = self._objects(here, made) if not _OF_OBJECTS.isdisjoint(schema) else set()
        if not _OF_CHOICES.isdisjoint(schema):
            self._alternatives(here, made)
        if "allOf" in schema:
            made = self._all_of(here, made, hidden)
        return finished(made, schema, nullable=_is_nullable(spot))

    def _arrays(self, here: _Position, made: dict[str, Any]) -> None:
        spot = here.spot
        for keyword in ("items", "contains", "unevaluatedItems"):
            if isinstance(spot.value.get(keyword), dict | bool):
                made[keyword] = self._schema(here.down(spot.below(keyword), 1))
        first = "prefixItems" if "prefixItems" in spot.value else "items"
        if parts := [self._schema(here.down(part, 2)) for part in spot.below(first).items()]:
            made["prefixItems"] = parts

    def _objects(self, here: _Position, made: dict[str, Any]) -> set[str]:
        """Convert the properties; return the names of those that do not belong to this direction."""
        spot, hidden = here.spot, set()
        given = spot.value.get("properties")
        if isinstance(given, dict):
            properties: dict[str, Any] = {}
            for name in given:
                below = spot.below("properties", name)
                if self._is_hidden(below):
                    hidden.add(name)
                else:
                    properties[name] = self._schema(here.down(below, 2))
            made["properties"] = properties
        elif given is not None:
            message = f"`properties` is {brief(given)}, and is left out"
            self._notices.warning(SCHEMA_PART_DROPPED, message, spot.below("properties"))
        if hidden and "required" in made:
            made["required"] = [name for name in made["required"] if name not in hidden]
        if "required" in made and not made["required"]:
            del made["required"]
        for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
            value = spot.value.get(keyword)
            if isinstance(value, bool):
                made[keyword] = value
            elif isinstance(value, dict):
                made[keyword] = self._schema(here.down(spot.below(keyword), 1)) or True
        for keyword in ("patternProperties", "dependentSchemas"):
            if isinstance(spot.value.get(keyword), dict):
                self._named(here, keyword, made)
        return hidden

    def _named(self, here: _Position, keyword: str, made: dict[str, Any]) -> None:
        below = here.spot.below(keyword)
        kept: dict[str, Any] = {}
        for name in below.value:
            inner = below.below(name)
            reason = pattern_fault(name) if keyword == "patternProperties" else None
            if reason is not None:
                message = f"the pattern {brief(name)} {reason}, and is left out"
                self._notices.warning(SCHEMA_PART_DROPPED, message, inner)
                continue
            kept[name] = self._schema(here.down(inner, 2) if keyword == "patternProperties" else here.beside(inner, 2))
        if kept:
            made[keyword] = kept

    def _is_hidden(self, spot: Spot) -> bool:
        """Return True if a property, or its reference's target, does not belong to this direction."""
        for _ in range(3):
            value = spot.value
            if not isinstance(value, dict):
                return False
            if self._hidden in value and spot.flag(self._hidden):
                return True
            if isinstance(value.get("$ref"), str):
                if (target := self._references.target(spot)) is None:
                    return False
                spot = target
            elif isinstance(value.get("allOf"), list) and len(value["allOf"]) == 1:
                spot = spot.below("allOf", 0)
            else:
                return False
        return False

    def _alternatives(self, here: _Position, made: dict[str, Any]) -> None:
        spot = here.spot
        for keyword in ("anyOf", "oneOf"):
            if not isinstance(spot.value.get(keyword), list) or not spot.value[keyword]:
                continue
            parts = [self._schema(here.beside(part, 2)) for part in spot.below(keyword).items()]
            # A discriminator distinguishes the parts even if their schemas overlap, so more than one may match.
            loose = keyword == "oneOf" and "discriminator" in spot.value and "anyOf" not in spot.value
            if len(parts) == 1 and not made.keys() & parts[0].keys():
                made.update(parts[0])
            else:
                distinct = [part for at, part in enumerate(parts) if part not in parts[:at]]
                made["anyOf" if loose else keyword] = distinct if keyword == "anyOf" or loose else parts
        for keyword in ("not", "if", "then", "else"):
            if isinstance(spot.value.get(keyword), dict | bool):
                made[keyword] = self._schema(here.beside(spot.below(keyword), 1))

    def _all_of(self, here: _Position, made: dict[str, Any], hidden: set[str]) -> dict[str, Any]:
        """Combine the parts of an `allOf`: one object if possible, else parts that do not exclude each other."""
        spots = list(here.spot.below("allOf").items())
        parts = [part for part in (self._schema(here.beside(spot, 2)) for spot in spots) if part]
        if not parts:
            return made
        hidden |= {name for spot in spots for name in self._hidden_names(spot)}
        if len(parts) == 1 and made.keys() <= WORDS and not hidden:
            return {**parts[0], **made}
        whole = [made, *(self._body(part) for part in parts)]
        if (merged := merge_objects([_without(part, hidden) for part in whole])) is not None:
            return merged
        if len(parts) == 1 and (made.keys() <= WORDS or parts[0].keys() <= {"$ref"}):
            return {**parts[0], **made}
        if any(is_closed(part) for part in whole):
            parts = [opened(body) if is_closed(body) else part for part, body in zip(parts, whole[1:], strict=True)]
            return {**opened(made), "allOf": parts, "unevaluatedProperties": False}
        return {**made, "allOf": parts}

    def _hidden_names(self, spot: Spot) -> Iterator[str]:
        target = self._references.follow(spot)
        given = target.below("properties") if target is not None else None
        if given is not None and isinstance(given.value, dict) and len(given.value) <= MAX_PARTS:
            yield from (name for name in given.value if self._is_hidden(given.below(name)))

    def _body(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace the reference of a part by its target, if that is already converted."""
        name = str(part.get("$ref", "")).removeprefix(DEFINITIONS)
        if not name or name in self._active or not part.keys() <= WORDS | {"$ref"}:
            return part
        return {**self._define(name, ()).body, **{word: part[word] for word in part if word != "$ref"}}


def _is_leaf(schema: Any) -> bool:
    """Return True if a schema is so small that a name for it costs more than it saves."""
    if not isinstance(schema, dict):
        return True
    values = schema.get("enum")
    many = isinstance(values, list) and len(values) > _MOST_INLINE
    nests = isinstance(schema.get("$ref"), str) or not _NESTING.isdisjoint(schema)
    return not nests and not many and len(str(schema.get("description", ""))) < 200


def _is_nullable(spot: Spot) -> bool:
    return any(key in spot.value and spot.flag(key) for key in ("nullable", "x-nullable"))


def _without(part: Mapping[str, Any], hidden: set[str]) -> Mapping[str, Any]:
    if not hidden or ("required" not in part and "properties" not in part):
        return part
    kept = dict(part)
    if "required" in kept:
        kept["required"] = [name for name in kept["required"] if name not in hidden]
    if "properties" in kept:
        kept["properties"] = {name: value for name, value in kept["properties"].items() if name not in hidden}
    return kept


class SchemaLimits(NamedTuple):
    definitions: int
    parts: int  # Maximum number of subschemas. Lint allows 2,000 in the whole input of an endpoint.
    length: int  # maximum bytes of JSON: descriptions have thousands of schemas, and a model reads each one whole


LIMITS: Final[Mapping[Direction, SchemaLimits]] = {
    "input": SchemaLimits(100, 1_000, 64_000),
    "output": SchemaLimits(60, 500, 32_000),
}
"""Limits by direction: an agent must know what it may send, but needs less detail of what it gets."""
_MANY_STEPS: Final = 12  # references between definitions for one value that cannot multiply too far


class SchemaReader:
    def __init__(self, references: RefResolver, notices: Notices, *, modern: bool) -> None:
        self._notices = notices
        self._converters = {way: Converter(references, notices, way, modern=modern) for way in _INVISIBLE}
        self._done: dict[tuple[Direction, tuple[str, str]], dict[str, Any]] = {}
        self._shared: dict[tuple[Direction, bytes], dict[str, Any]] = {}
        self._cut: dict[tuple[Direction, str, frozenset[str]], dict[str, Any]] = {}

    def read(self, spot: Spot, direction: Direction) -> Mapping[str, Any]:
        """Read the schema at a place, with everything it refers to under `$defs`."""
        key = (direction, spot.key)
        if (made := self._done.get(key)) is None:
            made = self._done[key] = self.complete(self._converters[direction].convert(spot), spot, direction)
        return made

    def complete(self, root: Definition, spot: Spot, direction: Direction) -> dict[str, Any]:
        """Add the needed definitions to a converted schema. Equal results are one object."""
        key = (direction, msgspec.json.encode(root.body))
        if (made := self._shared.get(key)) is None:
            made = self._shared[key] = self._assembled(root, spot, direction)
        return made

    def _assembled(self, root: Definition, spot: Spot, direction: Direction) -> dict[str, Any]:
        converter = self._converters[direction]
        while name := root.body.get("$ref", "").removeprefix(DEFINITIONS):
            # The properties of an input must be at its root, not behind a reference.
            own = {key: root.body[key] for key in root.body if key != "$ref"}
            root = Definition("", {**converter.definition(name).body, **own})
        limits = LIMITS[direction]
        kept, left = _nearest(root, converter, limits)
        if left:
            message = (
                f"the schema reaches more than {limits.definitions} definitions, {limits.parts:,} parts or "
                f"{limits.length:,} bytes; {len(left)} of its references are left open"
            )
            self._notices.info(SCHEMA_CUT, message, spot, "Describe those that agents need in the endpoint file.")
        bodies = {name: converter.definition(name).body for name in left}
        opened = {name: {"type": kind} if (kind := body.get("type")) else {} for name, body in bodies.items()}
        made = _cut(root.body, opened) if left.intersection(root.names) else root.body
        if not kept:
            return _with_fitting_defaults(made, spot, self._notices)
        definitions: dict[str, Any] = {}
        for definition in kept.values():
            if not (away := left.intersection(definition.names)):
                definitions[definition.name] = definition.body
                continue
            known = (direction, definition.name, frozenset(away))
            if known not in self._cut:
                self._cut[known] = _cut(definition.body, opened)
            definitions[definition.name] = self._cut[known]
        made = {**made, "$defs": definitions}
        steps = sum(len(definition.in_place) for definition in kept.values())
        if steps > _MANY_STEPS and (reason := excess(nodes(made))) is not None:
            self._notices.warning(SCHEMA_CUT, f"the schema is left open: {reason}", spot)
            return {"type": made["type"]} if "type" in made else {}
        return _with_fitting_defaults(made, spot, self._notices)


def _nearest(root: Definition, converter: Converter, limits: SchemaLimits) -> tuple[dict[str, Definition], set[str]]:
    """Return the definitions within the limits, those reached in the fewest steps first; and the others' names."""
    kept: dict[str, Definition] = {}
    left: set[str] = set()
    parts, length = root.size
    waiting = deque(root.names)
    while waiting:
        name = waiting.popleft()
        if name in kept or name in left:
            continue
        definition = converter.definition(name)
        more_parts, more_length = parts + definition.size[0], length + definition.size[1]
        if len(kept) == limits.definitions or more_parts > limits.parts or more_length > limits.length:
            left.add(name)
            continue
        kept[name] = definition
        parts, length = more_parts, more_length
        waiting.extend(definition.names)
    return kept, left


def _cut(schema: Any, opened: Mapping[str, dict[str, Any]], *, names: bool = False) -> Any:
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
    if wrong := [name for name, part in named.items() if not _takes_default(part, schema)]:
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
