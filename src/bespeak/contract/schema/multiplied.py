"""Multiplication by references: thirty lines of `allOf` can cost a validator more checks than it can ever finish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bespeak.contract.schema.steps import Place, Steps

MAX_WAYS: Final = 10_000
"""Limit of subschemas that check one value, counted each time they are reached: about a millisecond."""

MAX_STEPS: Final = 200
"""Limit of nested subschemas for one value: the library recurses on the native stack; some thousands overflow it."""


def excess(nodes: Iterable[tuple[Place, dict[str, Any]]]) -> str | None:
    """Return why a schema is too expensive for a validator: the paths from a node to all checks of the same value.

    Neither compiling with `unevaluatedProperties` nor validating caches subschemas already visited. Steps to a part of
    the value do not count: the value has only so many parts.
    """
    below = Steps(list(nodes))
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
                return f"references multiply the schema: more than {MAX_WAYS:,} subschemas apply to one value"
            longest[me] = 1 + max((longest.get(id(step), 0) for step in steps), default=0)
            if longest[me] > MAX_STEPS:
                return f"more than {MAX_STEPS} subschemas form a chain"
            path.pop()
    return None
