"""Definitions of several schemas merged into one; a name that is taken gets a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bespeak.contract.schema.reference import rewrite
from bespeak.documents.adoption.naming import unused
from bespeak.documents.openapi.definition import DEFINITIONS
from bespeak.text.source.pointer import child, unescaped


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
