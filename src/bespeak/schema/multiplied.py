"""What references make of a schema: thirty lines of `allOf` can ask a validator for more checks than time has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from bespeak.source.pointer import unescaped

MAX_WAYS: Final = 10_000
"""Subschemas that judge one value, counted as often as they are reached: about a millisecond."""

MAX_STEPS: Final = 200
"""Subschemas on one way: the library goes down them on the native stack, which some thousands overflow."""

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_REFERENCES: Final = ("$ref", "$dynamicRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")

Place = tuple[str | int, ...]


def excess(nodes: Iterable[tuple[Place, dict[str, Any]]]) -> str | None:
    """What is too much for a validator in a schema: from a node on, the ways to all that judges the same value.

    Neither compiling with `unevaluatedProperties` nor validating remembers what was reached before. Steps to a part
    of the value do not count: the value has only so many parts.
    """
    below = _Steps(list(nodes))
    ways: dict[int, int] = {}
    longest: dict[int, int] = {}
    begun: set[int] = set()
    for start in below.all():
        path = [start]
        while path:
            node = path[-1]
            me = id(node)
            if me in ways:
                path.pop()
                continue
            steps = below.of(node)
            if me not in begun:
                begun.add(me)
                ahead = [step for step in steps if id(step) not in begun]
                if ahead:
                    path.extend(ahead)
                    continue
            # A step back to a node that is still being counted is a cycle; the validator goes round it once.
            ways[me] = 1 + sum(ways.get(id(step), 0) for step in steps)
            if ways[me] > MAX_WAYS:
                return f"references multiply the schema: more than {MAX_WAYS:,} subschemas judge one value"
            longest[me] = 1 + max((longest.get(id(step), 0) for step in steps), default=0)
            if longest[me] > MAX_STEPS:
                return f"more than {MAX_STEPS} subschemas lead from one to the next"
            path.pop()
    return None


class _Steps:
    """The nodes of a schema, and where each hands on the value it judges."""

    def __init__(self, nodes: list[tuple[Place, dict[str, Any]]]) -> None:
        self._nodes = nodes
        self._root = nodes[0][1]
        resources = {at: node for at, node in nodes if at and "$id" in node}
        self._base: dict[int, dict[str, Any]] = {}
        """The schema with an `$id` around a node, where it is not the whole."""
        if resources:
            for at, node in nodes:
                around = next((resources[at[:end]] for end in range(len(at), 0, -1) if at[:end] in resources), None)
                if around is not None:
                    self._base[id(node)] = around
        self._anchors = {
            f"#{node[key]}": node for _, node in nodes for key in _ANCHORS if isinstance(node.get(key), str)
        }

    def all(self) -> Iterator[dict[str, Any]]:
        return (node for _, node in self._nodes)

    def of(self, node: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The schemas that judge the same value as a node does."""
        found: list[Any] = [item for key in _LISTS if isinstance(node.get(key), list) for item in node[key]]
        found += [node[key] for key in _SINGLE if key in node]
        dependent = node.get("dependentSchemas")
        found += dependent.values() if isinstance(dependent, dict) else ()
        found += [self._target(node[key], node) for key in _REFERENCES if key in node]
        return [step for step in found if isinstance(step, dict)]

    def _target(self, reference: Any, node: Mapping[str, Any]) -> Any:
        if not isinstance(reference, str):
            return None
        here: Any = self._base.get(id(node), self._root)
        if reference in ("", "#"):
            return here
        if not reference.startswith("#/"):
            return self._anchors.get(reference)
        for part in reference[2:].split("/"):
            key = unescaped(unquote(part))
            if isinstance(here, dict):
                here = here.get(key)
            else:
                index = int(key) if key.isdecimal() and len(key) < 7 else -1
                here = here[index] if isinstance(here, list) and 0 <= index < len(here) else None
        return here
