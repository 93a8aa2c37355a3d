"""Definitions of several schemas in one: each keeps its name, or gets another where two would meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.compile import DATA_KEYWORDS, NAMING_KEYWORDS
from bespeak.documents.adoption.naming import unused
from bespeak.text.source.pointer import child, unescaped

_PREFIX: Final = "#/$defs/"


class Definitions:
    """What the parts of one schema refer to."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def adopt(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A schema without its own definitions, which are among those found from now on."""
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


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_renamed(item, names) for item in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str) and value.startswith(_PREFIX):
            first, slash, rest = value.removeprefix(_PREFIX).partition("/")
            name = names.get(unescaped(first))
            copy[key] = value if name is None else f"#{child('/$defs', name)}{slash}{rest}"
        elif key in NAMING_KEYWORDS and isinstance(value, Mapping):
            copy[key] = {name: _renamed(part, names) for name, part in value.items()}
        else:
            copy[key] = value if key in DATA_KEYWORDS else _renamed(value, names)
    return copy
