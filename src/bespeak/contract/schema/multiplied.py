"""What references make of a schema: thirty lines of `allOf` can ask a validator for more checks than time has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bespeak.contract.schema.steps import Place, Steps

MAX_WAYS: Final = 10_000
"""Subschemas that judge one value, counted as often as they are reached: about a millisecond."""

MAX_STEPS: Final = 200
"""Subschemas on one way: the library goes down them on the native stack, which some thousands overflow."""


def excess(nodes: Iterable[tuple[Place, dict[str, Any]]]) -> str | None:
    """What is too much for a validator in a schema: from a node on, the ways to all that judges the same value.

    Neither compiling with `unevaluatedProperties` nor validating remembers what was reached before. Steps to a part
    of the value do not count: the value has only so many parts.
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
                return f"references multiply the schema: more than {MAX_WAYS:,} subschemas judge one value"
            longest[me] = 1 + max((longest.get(id(step), 0) for step in steps), default=0)
            if longest[me] > MAX_STEPS:
                return f"more than {MAX_STEPS} subschemas lead from one to the next"
            path.pop()
    return None
