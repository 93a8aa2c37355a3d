"""Boolean schemas written as objects: many readers of tool schemas, and earlier revisions of MCP, know only objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS

_HOLDING: Final = frozenset({"contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"})
"""Keywords with one schema. Those that close a schema are not among them: a boolean is their usual value."""


def without_booleans(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema with `{}` for each true schema below it and `{"not": {}}` for each false one."""
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in DATA_KEYWORDS:
            made[keyword] = value
        elif keyword in NAMING_KEYWORDS and isinstance(value, Mapping):
            made[keyword] = {name: _object(part) for name, part in value.items()}
        elif isinstance(value, list):
            made[keyword] = [_object(part) for part in value]
        else:
            made[keyword] = _object(value) if keyword in _HOLDING or isinstance(value, Mapping) else value
    return made


def _object(part: Any) -> Any:
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    return without_booleans(part) if isinstance(part, Mapping) else part
