"""Definitions that schemas refer to by name: their size, and those of several schemas merged into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.schema.subschemas import nodes, rewrite, with_children
from bespeak.documents.adoption.naming import unused
from bespeak.text.source.pointer import child, unescaped

DEFINITIONS: Final = "#/$defs/"  # prefix of a reference to a definition


@dataclass
class Definition:
    """One definition, converted."""

    name: str
    body: dict[str, Any]
    in_place: tuple[str, ...] = ()  # definitions that apply to the same value as this one, repeated for each reference

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Definitions it refers to, in order."""
        return names_in(self.body)

    @cached_property
    def parts(self) -> int:
        """Number of schemas in it."""
        return sum(1 for _ in nodes(self.body))

    @cached_property
    def length(self) -> int:
        """Length as JSON, in bytes."""
        return len(msgspec.json.encode(self.body))


def names_in(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the definitions that a schema refers to, nearest first."""
    found = [(len(at), node["$ref"]) for at, node in nodes(schema) if isinstance(node.get("$ref"), str)]
    found.reverse()  # the walk visits the last entry first
    ordered = (reference.removeprefix(DEFINITIONS) for _, reference in sorted(found, key=lambda one: one[0]))
    return tuple(dict.fromkeys(unescaped(name.partition("/")[0]) for name in ordered))


def shallow(schema: dict[str, Any], levels: int) -> dict[str, Any]:
    """Copy a schema without the parts below this many levels."""
    if levels == 0:
        return {key: schema[key] for key in ("type", "description") if key in schema}
    return with_children(schema, lambda part: shallow(part, levels - 1))


class Definitions:
    """The definitions that the parts of one schema refer to."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def adopt(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema without its own definitions, which are added to the collected ones."""
        bare = {key: value for key, value in schema.items() if key != "$defs"}
        own = schema.get("$defs")
        if not isinstance(own, Mapping) or not own:
            return bare
        names = {name: self._name(name, part) for name, part in own.items()}
        moved = {name: new for name, new in names.items() if name != new}
        for name, part in own.items():
            self.found[names[name]] = _renamed(part, moved) if moved else part
        renamed: dict[str, Any] = _renamed(bare, moved) if moved else bare
        return renamed

    def _name(self, name: str, part: Any) -> str:
        known = self.found.get(name, part)
        return name if known is part or known == part else unused(name, self.found)


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    def change(reference: str) -> str:
        if not reference.startswith(DEFINITIONS):
            return reference
        first, slash, rest = reference.removeprefix(DEFINITIONS).partition("/")
        name = names.get(unescaped(first))
        return reference if name is None else f"#{child('/$defs', name)}{slash}{rest}"

    return rewrite(part, change)
