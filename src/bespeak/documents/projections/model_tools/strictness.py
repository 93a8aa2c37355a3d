"""Why a converted schema cannot be sent as strict: values it cannot express, and limits of the provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bespeak.documents.projections.model_tools.document import UNFIT, Document, Node, types
from bespeak.documents.projections.model_tools.recursion import circular

_MOST: Final = 5
"""Maximum reasons that are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a strict schema."""

    properties: int | None = None
    levels: int | None = None
    """Nested objects, without those behind references."""
    values: int | None = None
    """Listed values in all."""
    long_list: tuple[int, int] | None = None
    """Length of a list of values from which their characters are limited, and that limit."""
    characters: int | None = None
    """Characters of names and listed values in all."""
    recursion: bool = False
    """True if a definition may contain itself."""


def faults(document: Document, limits: Limits) -> list[str]:
    """Return the first reasons why a schema cannot be strict, each with its place."""
    found: list[str] = []
    if not limits.recursion and circular(document.definitions):
        found.append("a definition contains itself")
    found += _excess(document, limits)
    for place, root in (("", document.root), *((f"{name}: ", node) for name, node in document.definitions.items())):
        for at, reason in _unfit(root):
            found.append(f"{place}{'.'.join(at) or 'input'}: {reason}")
            if len(found) >= _MOST:
                return found
    return found


def _unfit(root: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield nodes that are marked or accept everything, with their places."""
    waiting: list[tuple[tuple[str, ...], Node]] = [((), root)]
    while waiting:
        at, node = waiting.pop()
        if UNFIT in node:
            yield at, node[UNFIT]
        elif not {"type", "anyOf", "$ref"} & node.keys():
            yield at, "any value is accepted"
        waiting += [((*at, name), part) for name, part in node.get("properties", {}).items()]
        waiting += [((*at, "[]"), node["items"])] if "items" in node else []
        waiting += [(at, option) for option in node.get("anyOf", ())]


def _excess(document: Document, limits: Limits) -> Iterator[str]:
    """Yield the limits that a schema exceeds."""
    properties = values = 0
    characters = sum(map(len, document.definitions))
    deepest = 0
    for root in (document.root, *document.definitions.values()):
        waiting = [(root, 0)]
        while waiting:
            node, level = waiting.pop()
            if "object" in types(node):
                level += 1
                deepest = max(deepest, level)
            members = node.get("properties", {})
            properties += len(members)
            listed = node.get("enum", ())
            texts = [value for value in listed if isinstance(value, str)]
            length = sum(map(len, texts))
            if limits.long_list and len(listed) > limits.long_list[0] and length > limits.long_list[1]:
                yield f"a list of {len(listed)} values has {length:,} characters"
            values += len(listed)
            characters += sum(map(len, members)) + length
            waiting += [(part, level) for part in (*members.values(), *node.get("anyOf", ()))]
            waiting += [(node["items"], level)] if "items" in node else []
    counts = (
        (properties, limits.properties, "properties"),
        (deepest, limits.levels, "levels of objects"),
        (values, limits.values, "listed values"),
        (characters, limits.characters, "characters of names and listed values"),
    )
    for count, limit, what in counts:
        if limit is not None and count > limit:
            yield f"the schema has {count:,} {what}, more than {limit:,}"
