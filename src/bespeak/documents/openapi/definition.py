"""A schema that others refer to by name, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.schema.subschemas import nodes, with_children
from bespeak.text.source.pointer import unescaped

DEFINITIONS: Final = "#/$defs/"
"""Prefix of a reference to a definition."""


@dataclass
class Definition:
    """One definition, converted."""

    name: str
    body: dict[str, Any]
    in_place: tuple[str, ...] = ()
    """Definitions that apply to the same value as this one, repeated for each reference."""

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
