"""Definitions that schemas refer to by name, and those of several schemas merged into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.schema.subschemas import nodes, rewrite
from bespeak.documents.adoption.naming import unused
from bespeak.text.source.pointer import child, unescaped

DEFINITIONS: Final = "#/$defs/"  # prefix of a reference to a definition


def names_in(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the definitions that a schema refers to, nearest first."""
    found = [(len(at), node["$ref"]) for at, node in nodes(schema) if isinstance(node.get("$ref"), str)]
    found.reverse()  # the walk visits the last entry first
    ordered = (reference.removeprefix(DEFINITIONS) for _, reference in sorted(found, key=lambda one: one[0]))
    return tuple(dict.fromkeys(unescaped(name.partition("/")[0]) for name in ordered))


@dataclass(slots=True)
class Definitions:
    """The definitions that the parts of one schema refer to."""

    found: dict[str, Any] = field(default_factory=dict)

    def adopt(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema without its own definitions, which are added to the collected ones."""
        bare = {key: value for key, value in schema.items() if key != "$defs"}
        own = schema.get("$defs")
        if not isinstance(own, Mapping) or not own:
            return bare
        names = {}
        for name, part in own.items():
            known = self.found.get(name, part)
            names[name] = name if known is part or known == part else unused(name, self.found)
        moved = {name: new for name, new in names.items() if name != new}
        for name, part in own.items():
            self.found[names[name]] = _renamed(part, moved) if moved else part
        renamed: dict[str, Any] = _renamed(bare, moved) if moved else bare
        return renamed


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    def change(reference: str) -> str:
        if not reference.startswith(DEFINITIONS):
            return reference
        first, slash, rest = reference.removeprefix(DEFINITIONS).partition("/")
        name = names.get(unescaped(first))
        return reference if name is None else f"#{child('/$defs', name)}{slash}{rest}"

    return rewrite(part, change)
