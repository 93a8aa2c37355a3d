"""Alternatives of a union that a value can meet at the same time, and values that could not be converted back."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

from bespeak.documents.projections.model_tools.document import (
    CHANGING,
    UNFIT,
    Definitions,
    Document,
    Node,
    alternatives,
    named,
    nodes,
    types,
)

_MOST: Final = 64
"""Maximum alternatives that are compared with each other."""
_MOST_COMPARED: Final = 50_000
"""Maximum comparisons in a schema: a tenth of a second."""
_DEEPEST: Final = 3
_AMBIGUOUS: Final = "alternatives that are written alike mean different values"


def are_disjoint(options: list[Node], definitions: Definitions) -> bool:
    """Return True if no value meets two of the options, as far as their types and members show."""
    return _Comparison(definitions).all_apart(options)


def mark_ambiguous(document: Document) -> Document:
    """Mark unions in which a value does not tell by which alternative it has to be converted back."""
    changing = _changing(document.definitions)
    comparison = _Comparison(document.definitions)

    def marked(node: Node, _: Definitions) -> Node:
        options = node.get("anyOf", [])
        if not any(_changes(option, changing) for option in options):
            return node
        if comparison.all_apart(options) or len({_plan(option, changing) for option in options}) == 1:
            return node
        clear = len(options) <= _MOST and all(
            comparison.are_apart(one, other) or _plan(one, changing) == _plan(other, changing)
            for one, other in combinations(options, 2)
        )
        return node if clear else {**node, UNFIT: _AMBIGUOUS}

    return document.apply(marked)


class _Comparison:
    """Compares alternatives. After too much work, all count as overlapping."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._left = _MOST_COMPARED

    def all_apart(self, options: list[Node]) -> bool:
        """Return True if no value meets two of the options."""
        return len(options) <= _MOST and all(self.are_apart(*pair) for pair in combinations(options, 2))

    def are_apart(self, one: Node, other: Node, depth: int = 0) -> bool:
        """Return True if no value meets both nodes."""
        for left in alternatives(one, self._definitions):
            for right in alternatives(other, self._definitions):
                self._left -= 1
                if self._left < 0 or not (_are_types_apart(left, right) or self._are_values_apart(left, right, depth)):
                    return False
        return True

    def _are_values_apart(self, one: Node, other: Node, depth: int) -> bool:
        if "enum" in one and "enum" in other:
            return not any(value in other["enum"] for value in one["enum"])
        if types(one) != ["object"] or types(other) != ["object"] or depth > _DEEPEST:
            return False
        if _excludes(one, other) or _excludes(other, one):
            return True
        mine, others = one.get("properties", {}), other.get("properties", {})
        needed = set(one.get("required", ())) & set(other.get("required", ())) & mine.keys() & others.keys()
        return any(self.are_apart(mine[name], others[name], depth + 1) for name in sorted(needed))


def _are_types_apart(one: Node, other: Node) -> bool:
    left, right = ({"number" if name == "integer" else name for name in types(node)} for node in (one, other))
    return bool(left and right) and left.isdisjoint(right)


def _excludes(one: Node, other: Node) -> bool:
    """Return True if an object requires a member that the other one does not have."""
    if other.get("additionalProperties", False) is not False or "patternProperties" in other:
        return False
    return any(name not in other.get("properties", {}) for name in one.get("required", ()))


def _changes(node: Node, changing: frozenset[str]) -> bool:
    return any(not CHANGING.isdisjoint(each) or named(each) in changing for each in nodes(node))


def _changing(definitions: Definitions) -> frozenset[str]:
    """Return the definitions with values that have to be converted back, here or below."""
    users: dict[str, list[str]] = {name: [] for name in definitions}
    for name, node in definitions.items():
        for each in nodes(node):
            target = named(each)
            if target is not None:
                users[target].append(name)
    waiting = [name for name, node in definitions.items() if _changes(node, frozenset())]
    found = set(waiting)
    while waiting:
        new = [user for user in users[waiting.pop()] if user not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


def _plan(node: Node, changing: frozenset[str]) -> Any:
    """Return how values are converted back: equal for nodes that do it alike, None for those that change nothing."""
    if "$ref" in node:
        return node["$ref"] if named(node) in changing else None
    marks = tuple((mark, repr(node[mark])) for mark in sorted(CHANGING & node.keys()))
    parts = [*node.get("properties", {}).items()]
    parts += [(key, node[key]) for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
    below = tuple((name, plan) for name, part in parts if (plan := _plan(part, changing)) is not None)
    options = tuple(_plan(option, changing) for option in node.get("anyOf", ()))
    return (marks, below, options) if marks or below or any(options) else None
