"""Subschemas of a schema: the keywords that hold them, and walks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

MAX_DEPTH: Final = 128
"""Limit of JSON levels in a schema: far beyond practical use, far below the limit of a native stack."""

DATA_KEYWORDS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose content is data: a `$ref` in it is not a reference."""
NAMING_KEYWORDS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose keys are names: a `$ref` among them is a name."""
COMPOSING: Final = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"})
"""Keywords that apply another schema to the same value."""


def nodes(schema: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield every object in schema position with its place. A loop with a stack: depth costs memory, not frames."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    while waiting:
        at, node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(((*at, index), item) for index, item in enumerate(node))
        elif isinstance(node, dict):
            yield at, node
            if len(at) > MAX_DEPTH:
                return
            for name, value in node.items():
                if name in NAMING_KEYWORDS and isinstance(value, dict):
                    waiting.extend(((*at, name, key), item) for key, item in value.items())
                elif name not in DATA_KEYWORDS:
                    waiting.append(((*at, name), value))


def children(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas directly below a schema."""
    found: list[dict[str, Any]] = []
    for key, value in schema.items():
        if key in DATA_KEYWORDS:
            continue
        if isinstance(value, dict):
            found += [part for part in value.values() if isinstance(part, dict)] if key in NAMING_KEYWORDS else [value]
        elif isinstance(value, list):
            found += [part for part in value if isinstance(part, dict)]
    return found


def with_children(schema: Mapping[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Copy a schema with `change` applied to each schema directly below it."""

    def changed(part: Any) -> Any:
        return change(part) if isinstance(part, dict) else part

    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in DATA_KEYWORDS:
            made[key] = value
        elif isinstance(value, dict) and key in NAMING_KEYWORDS:
            made[key] = {name: changed(part) for name, part in value.items()}
        else:
            made[key] = [changed(part) for part in value] if isinstance(value, list) else changed(value)
    return made
