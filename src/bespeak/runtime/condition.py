"""Conditions on values as agents write them: a value to equal, or comparisons such as `{"gte": 2, "lt": 5}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.runtime.composition.comparison import COMPARE

_SHOWN: Final = 40
MISSING: Final = object()
"""What a path leads to where nothing is; no condition holds for it."""


def find_fault(condition: Any) -> str | None:
    """Return what is wrong with a condition; None if it can be tested."""
    if not isinstance(condition, Mapping):
        return None
    unknown = condition.keys() - COMPARE.keys()
    if unknown or not condition:
        named = f"{min(unknown)[:_SHOWN]!r} is not a comparison" if unknown else "it has no comparison"
        return f"{named}; use {', '.join(COMPARE)}"
    if "in" in condition and not isinstance(condition["in"], list):
        return "`in` takes a list"
    return None


def holds(condition: Any, value: Any) -> bool:
    """Return True if a value meets a condition without faults."""
    if value is MISSING:
        return False
    if not isinstance(condition, Mapping):
        return COMPARE["eq"](condition)(value)
    return all(COMPARE[name](wanted)(value) for name, wanted in condition.items())


def find_member(value: Any, path: str) -> Any:
    """Follow a path of member names and positions with dots; return MISSING if it leads nowhere."""
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and part.isascii() and int(part[:9]) < len(value):
            value = value[int(part[:9])]
        else:
            return MISSING
    return value
