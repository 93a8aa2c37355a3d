"""Slots of a JSON Schema: every place where its values have a value of their own, with what may stand there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.schema.view import SchemaView

ITEM: Final = "[]"  # step of a path into the elements of a list
_VALUES: Final = 256  # most values of an enumeration that are compared
MISSING: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Facts:
    """What a schema says about a value, through references and combinations."""

    kind: str = ""  # the one type of the value; "mixed" if there are several, empty if it is open
    kinds: frozenset[str] = frozenset()  # all of them
    members: Mapping[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: Any = None
    format: str = ""
    values: frozenset[tuple[bool, Any]] | None = None
    """The only scalars allowed, each with whether it is a boolean, since True equals 1; None if they are not listed."""
    default: Any = MISSING
    least: float | None = None
    most: float | None = None
    names: Sequence[str] = ()  # names of the definitions that it refers to

    @property
    def constant(self) -> Any:
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
    walk = _Walk(schema, most, levels, strict)
    while walk.is_cut and levels > 2:  # what is near the root says more than what is deep in its first members
        levels -= 1
        walk = _Walk(schema, most, levels, strict)
    return walk.found


class _Walk:
    """One walk. Its work is bounded, because references may multiply what a small schema says."""

    def __init__(self, root: Mapping[str, Any], most: int, levels: int, strict: bool) -> None:
        self._root = SchemaView(root, root, most=most * 16)
        self._most = most
        self._levels = levels
        self._strict = strict
        self.found: list[Slot] = []
        self.is_cut = False  # True if there were more slots than may be
        facts = self._facts(self._root)
        if facts.kind == "array":  # a list at the top level is a field without a name
            self._slot(("",), self._root, required=True, level=0)
        else:
            self._members((), facts, 0)

    def _facts(self, view: SchemaView) -> Facts:
        keywords, kinds = view.keywords, {*view.kinds}
        if {"integer", "number"} <= kinds:
            kinds.remove("integer")
        plain = [one for one in view.values or () if isinstance(one, (str, int, float))]
        members = [one for one in view.fields if one.schema is not False]
        if self._strict and view.is_cut:
            raise SchemaTooLarge
        return Facts(
            kind="mixed" if len(kinds) > 1 else view.kind if kinds else "",
            kinds=frozenset(kinds),
            members={one.name: one.schema for one in members},
            required=frozenset(one.name for one in members if one.required),
            items=keywords.get("items"),
            format=keywords["format"] if isinstance(keywords.get("format"), str) else "",
            values=frozenset((type(one) is bool, one) for one in plain) if 0 < len(plain) <= _VALUES else None,
            default=keywords.get("default", MISSING),
            least=_bound(keywords, "minimum"),
            most=_bound(keywords, "maximum"),
            names=view.names,
        )

    def _members(self, path: tuple[str, ...], facts: Facts, level: int) -> None:
        for name, schema in facts.members.items():
            if not name or "." in name or ITEM in name:
                if self._strict:
                    raise Unnameable(name)
                continue
            if len(self.found) >= self._most or level >= self._levels:
                if self._strict:
                    raise SchemaTooLarge
                self.is_cut |= len(self.found) >= self._most
                return
            self._slot((*path, name), SchemaView(schema, self._root), required=name in facts.required, level=level)

    def _slot(self, path: tuple[str, ...], view: SchemaView, *, required: bool, level: int) -> None:
        facts = self._facts(view)
        item = self._facts(view.items) if facts.kind == "array" else None
        inside = facts if item is None else item
        nested = facts.kind in ("array", "object") and bool(inside.members)
        self.found.append(Slot(path, facts, required, nested, item))
        if nested:
            self._members(path if item is None else (*path, ITEM), inside, level + 1)


def _bound(keywords: Mapping[str, Any], name: str) -> float | None:
    bound = keywords.get(name)
    return bound if isinstance(bound, (int, float)) and not isinstance(bound, bool) else None


def fit(need: Facts, have: Facts, *, sent: bool = False) -> float:
    """Judge whether `have` may stand for `need`: 0 if not, 1 if certainly. What is `sent`, its endpoint checks."""
    wanted, given = need.kind, have.kind
    if "mixed" in (wanted, given):
        return 0.97 if sent and given in need.kinds and not need.format and need.values is None else 0.0
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
