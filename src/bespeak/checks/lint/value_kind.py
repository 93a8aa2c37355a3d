"""What is known about the values of a recipe before it runs: types, fields and elements, from the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bespeak.contract.schema.members import Members
from bespeak.text.diagnostics.brief import brief

_DEEPEST: Final = 8
"""Levels of objects that are compared; schemas may refer to themselves."""

_JSON_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_ABSENT: Final[Any] = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is known about a value. Without anything, every value is possible."""

    members: Members | None = None
    """Description by a schema."""
    fields: Mapping[str, Kind] | None = None
    """Fields of an object that the recipe itself makes."""
    constant: Any = _ABSENT
    is_list: bool = False
    """True for a list whose elements the other members describe."""
    is_optional: bool = False
    """True if the value may be missing."""

    @property
    def types(self) -> frozenset[str]:
        """JSON types; empty if every type is possible."""
        if self.is_list:
            return frozenset({"array"})
        if self.constant is not _ABSENT:
            return frozenset({_JSON_TYPES[type(self.constant)]})
        if self.fields is not None:
            return frozenset({"object"})
        return self.members.types if self.members is not None else frozenset()

    @property
    def element(self) -> Kind:
        """Element of a list; for any other value the value itself, which counts as a list of one."""
        if self.is_list:
            return replace(self, is_list=False, is_optional=False)
        if self.constant is not _ABSENT and isinstance(self.constant, list):
            return Kind(constant=self.constant[0]) if self.constant else Kind()
        if self.members is not None and "array" in self.types:
            return Kind(members=self.members.element)
        return replace(self, is_optional=False)

    def field(self, name: str) -> Kind | str:
        """Return a field, of each element for a list; or why there is none."""
        if self.is_list or (self.members is not None and self.types == {"array"}):
            found = self.element.field(name)
            return found if isinstance(found, str) else found.listed
        if self.constant is not _ABSENT and isinstance(self.constant, dict):
            return Kind(constant=self.constant[name]) if name in self.constant else _no_field(name, self.constant)
        if self.fields is not None:
            return self.fields.get(name) or _no_field(name, self.fields)
        members = self.members
        if members is None:
            return Kind()
        if members.declares(name):
            return Kind(members=members.below(name), is_optional=self.is_optional or name not in members.required)
        if members.takes_any:
            return Kind()
        if members.types and not members.types & {"object", "array"}:
            return f"{brief(name)} is not in a value of type {' or '.join(sorted(members.types))}"
        return _no_field(name, members.reachable)

    @property
    def listed(self) -> Kind:
        """The list of such values. Lists inside become one list."""
        if self.is_list:
            return self
        element = self.element if "array" in self.types else self
        return replace(element, is_list=True, is_optional=False)

    def follow(self, path: str) -> Kind | str:
        """Follow a dotted path; return what is wrong with it if it leads nowhere."""
        kind = self
        for name in path.split(".") if path else ():
            found = kind.field(name)
            if isinstance(found, str):
                return found
            kind = found
        return kind


def misfits(kind: Kind, wanted: Members, depth: int = 0) -> Iterator[str]:
    """Yield why no value of a kind can be valid where `wanted` describes it.

    What is not certain is left to the check of each call.
    """
    types = kind.types - {"null"}
    if types and wanted.types and not _overlap(types, wanted.types):
        yield f"is {_named(types)}, and {_named(wanted.types)} is wanted"
        return
    if depth == _DEEPEST:
        return
    if wanted.types == {"array"} and wanted.element is not None and (kind.is_list or kind.members is not None):
        yield from (f"has elements of which each {text}" for text in misfits(kind.element, wanted.element, depth + 1))
        return
    if kind.is_list:
        return
    if kind.constant is not _ABSENT:
        if wanted.values and kind.constant not in wanted.values:
            yield f"is {brief(kind.constant)}, and one of {_listed(wanted.values)} is wanted"
        return
    if kind.members is not None:
        if kind.members.formats and wanted.formats and not kind.members.formats & wanted.formats:
            yield f"has the format {_listed(kind.members.formats)}, and {_listed(wanted.formats)} is wanted"
        if kind.members.values and wanted.values and not set(kind.members.values) & set(wanted.values):
            yield f"is one of {_listed(kind.members.values)}, and one of {_listed(wanted.values)} is wanted"
    if "object" in types:
        yield from _misfitting_fields(kind, wanted, depth)


def _misfitting_fields(kind: Kind, wanted: Members, depth: int) -> Iterator[str]:
    for name in wanted.names:
        found = kind.field(name)
        if isinstance(found, str):
            if name in wanted.required and not wanted.has_alternatives:
                yield f"has no {brief(name)}, which is required"
        else:
            yield from (f"has {brief(name)}, which {text}" for text in misfits(found, wanted.below(name), depth + 1))


def gaps(kind: Kind, wanted: Members, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the paths of required fields whose value may be null, which is not allowed there; `[]` is each element."""
    if depth == _DEEPEST:
        return
    if wanted.types == {"array"} and wanted.element is not None and (kind.is_list or kind.members is not None):
        yield from (("[]", *path) for path in gaps(kind.element, wanted.element, depth + 1))
    elif not kind.is_list and "object" in kind.types:
        for name in wanted.names:
            found, below = kind.field(name), wanted.below(name)
            if isinstance(found, str):
                continue
            if name in wanted.required and "null" in found.types and below.types and "null" not in below.types:
                yield (name,)
            else:
                yield from ((name, *path) for path in gaps(found, below, depth + 1))


def _overlap(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one & other) or ("number" in one | other and "integer" in one | other)


def _named(types: frozenset[str]) -> str:
    return " or ".join(f"{'an' if name[0] in 'aio' else 'a'} {name}" for name in sorted(types))


def _listed(values: Any) -> str:
    shown = sorted(map(str, values))
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


def _no_field(name: str, known: Any) -> str:
    names = sorted(known)[:8]
    there = f"; there are {', '.join(names)}" if names else ""
    return f"there is no field {brief(name)}{there}"
