"""Slots of a JSON Schema: every place where its values have a value of their own, with what may stand there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from bespeak.contract.schema.subschemas import target

ITEM: Final = "[]"  # step of a path into the elements of a list
_NAMES: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_NESTED: Final = 12  # most references, combinations and alternatives inside each other
_VALUES: Final = 256  # most values of an enumeration that are compared
MISSING: Final[Any] = object()


@dataclass
class Facts:
    """What a schema says about a value, through references and combinations."""

    kinds: set[str] = field(default_factory=set)  # types without null; empty if any type is allowed
    members: dict[str, Any] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    items: Any = None
    format: str = ""
    values: frozenset[tuple[bool, Any]] | None = None
    """The only scalars allowed, each with whether it is a boolean, since True equals 1; None if they are not listed."""
    default: Any = MISSING
    least: float | None = None
    most: float | None = None
    names: list[str] = field(default_factory=list)  # names of the definitions that it refers to
    mixed: bool = False  # True for alternatives that are not alike

    @cached_property
    def kind(self) -> str:
        """The one type of the value; empty if it is open or mixed."""
        kinds = self.kinds - {"integer"} if {"integer", "number"} <= self.kinds else self.kinds
        if len(kinds) == 1:
            return next(iter(kinds))
        if kinds or self.mixed:
            return "mixed" if kinds else ""
        return "object" if self.members else "array" if self.items is not None else ""

    @property
    def constant(self) -> Any:
        """The only value allowed, or MISSING."""
        return next(iter(self.values))[1] if self.values is not None and len(self.values) == 1 else MISSING


@dataclass(frozen=True, slots=True)
class Slot:
    path: tuple[str, ...]
    facts: Facts
    required: bool
    is_container: bool = False  # True for an object or list whose members are slots of their own
    item: Facts | None = None  # elements of a list


class SchemaTooLarge(Exception):
    """A schema has more slots or levels than are looked at."""


class Unnameable(Exception):
    """A schema has a name that the paths of recipes cannot contain."""


def slots_of(schema: Mapping[str, Any], *, most: int, levels: int, strict: bool = False) -> list[Slot]:
    """List the slots of a schema, containers first. Leave out what is too much or unnameable; raise it if `strict`."""
    return _Walk(schema, most, levels, strict).run()


class _Walk:
    """One walk. Its work is bounded, because references may multiply what a small schema says."""

    def __init__(self, root: Mapping[str, Any], most: int, levels: int, strict: bool) -> None:
        self._root = root
        self._most = most
        self._levels = levels
        self._strict = strict
        self._work = most * 16
        self._found: list[Slot] = []

    def run(self) -> list[Slot]:
        self._members((), self._facts(self._root), 0)
        return self._found

    def _facts(self, schema: Any) -> Facts:
        facts = Facts()
        self._merge(schema, facts, 0)
        return facts

    def _members(self, path: tuple[str, ...], facts: Facts, level: int) -> None:
        for name, schema in facts.members.items():
            if not name or "." in name or ITEM in name:
                if self._strict:
                    raise Unnameable(name)
                continue
            if len(self._found) >= self._most or self._work <= 0 or level >= self._levels:
                if self._strict:
                    raise SchemaTooLarge
                return
            self._slot((*path, name), self._facts(schema), name in facts.required, level)

    def _slot(self, path: tuple[str, ...], facts: Facts, required: bool, level: int) -> None:
        if facts.kind == "array":
            item = self._facts(facts.items)
            nested = bool(item.members)
            self._found.append(Slot(path, facts, required, nested, item))
            if nested:
                self._members((*path, ITEM), item, level + 1)
        else:
            nested = facts.kind == "object" and bool(facts.members)
            self._found.append(Slot(path, facts, required, nested))
            if nested:
                self._members(path, facts, level + 1)

    def _merge(self, schema: Any, facts: Facts, depth: int) -> None:
        self._work -= 1
        if not isinstance(schema, Mapping) or depth > _NESTED or self._work <= 0:
            if self._strict and (depth > _NESTED or self._work <= 0):
                raise SchemaTooLarge
            return
        reference = schema.get("$ref")
        if isinstance(reference, str):
            facts.names.append(reference.rsplit("/", 1)[-1])
            self._merge(target(reference, self._root), facts, depth + 1)
        for part in _list(schema, "allOf"):
            self._merge(part, facts, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            self._alternatives(_list(schema, keyword), facts, depth)
        _add(schema, facts)

    def _alternatives(self, options: list[Any], facts: Facts, depth: int) -> None:
        real = [option for option in options if not (isinstance(option, Mapping) and option.get("type") == "null")]
        if len(real) == 1:
            self._merge(real[0], facts, depth + 1)
            return
        each = [Facts() for _ in real]
        for option, one in zip(real, each, strict=True):
            self._merge(option, one, depth + 1)
        for one in each:
            facts.kinds |= {one.kind} - {""}
            facts.mixed = facts.mixed or bool(one.members) or not one.kind
            for name, schema in one.members.items():
                facts.members.setdefault(name, schema)
        if each and all(one.values is not None for one in each):
            facts.values = frozenset(value for one in each for value in one.values or ())


def _add(schema: Mapping[str, Any], facts: Facts) -> None:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and len(values) <= _VALUES:
        plain = [value for value in values if isinstance(value, (str, int, float))]
        listed = frozenset((type(value) is bool, value) for value in plain)
        facts.values = listed if facts.values is None else facts.values & listed
        kinds = kinds or sorted({_NAMES[type(value)] for value in plain})
    facts.kinds |= {each for each in kinds if isinstance(each, str) and each != "null"}
    members, required = schema.get("properties"), schema.get("required")
    if isinstance(members, Mapping):
        facts.members |= {name: member for name, member in members.items() if member is not False}
    if isinstance(required, list):
        facts.required |= {name for name in required if isinstance(name, str)}
    if "items" in schema:
        facts.items = schema["items"]
    if isinstance(schema.get("format"), str):
        facts.format = schema["format"]
    facts.default = schema.get("default", facts.default)
    for keyword in ("minimum", "maximum"):
        bound = schema.get(keyword)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            if keyword == "minimum":
                facts.least = bound
            else:
                facts.most = bound


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def fit(need: Facts, have: Facts, *, sent: bool = False) -> float:
    """Judge whether `have` may stand for `need`: 0 if not, 1 if certainly. What is `sent`, its endpoint checks."""
    wanted, given = need.kind, have.kind
    if "mixed" in (wanted, given):
        return 0.0
    if wanted and given and wanted != given and not (wanted == "number" and given == "integer"):
        return 0.0
    if need.format and have.format and need.format != have.format:
        return 0.0
    quality = 1.0 if wanted and given else 0.97
    quality *= 1.0 if sent or have.format or not need.format else 0.95
    if need.values is not None and have.values is None:
        quality *= 0.97 if sent else 0.8
    elif need.values is not None and have.values is not None:
        if need.values.isdisjoint(have.values):
            return 0.0
        quality *= 1.0 if have.values <= need.values else 0.9
    low = have.most is not None and need.least is not None and have.most < need.least
    high = have.least is not None and need.most is not None and have.least > need.most
    return 0.0 if low or high else quality
