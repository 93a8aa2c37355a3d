"""A schema that others refer to by its name, and how much it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.schema.compile import DATA_KEYWORDS, NAMING_KEYWORDS, nodes

DEFINITIONS: Final = "#/$defs/"
"""What a reference to a definition starts with."""


@dataclass
class Definition:
    """One definition, converted."""

    name: str
    body: dict[str, Any]
    in_place: tuple[str, ...] = ()
    """Definitions that judge the same value as this one, each as often as it is asked."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The definitions it refers to, in the order it names them."""
        return names_in(self.body)

    @cached_property
    def parts(self) -> int:
        """How many schemas it consists of."""
        return sum(1 for _ in nodes(self.body))

    @cached_property
    def length(self) -> int:
        """Its length as JSON."""
        return len(msgspec.json.encode(self.body))


def names_in(schema: dict[str, Any]) -> tuple[str, ...]:
    """The definitions a schema refers to, nearest first."""
    found = [(len(at), node["$ref"].removeprefix(DEFINITIONS)) for at, node in nodes(schema) if "$ref" in node]
    found.reverse()  # the walk takes what was written last first
    return tuple(dict.fromkeys(name for _, name in sorted(found, key=lambda one: one[0])))


def shallow(schema: Any, levels: int, *, names: bool = False) -> Any:
    """A schema with nothing below so many levels."""
    if isinstance(schema, list):
        return [shallow(item, levels) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if names:
        return {name: shallow(item, levels) for name, item in schema.items()}
    if levels == 0:
        return {key: schema[key] for key in ("type", "description") if key in schema}
    return {
        key: value if key in DATA_KEYWORDS else shallow(value, levels - 1, names=key in NAMING_KEYWORDS)
        for key, value in schema.items()
    }
