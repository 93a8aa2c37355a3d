"""Conditions on values as agents write them, such as `{"gte": 2, "lt": 5}`, and the thresholds of monitors.

Without a threshold, every change is worth a notification. A number is crossed in either direction; comparisons and
an expression begin to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.extensions.monitors.target import MEASURED, NUMBERS
from bespeak.runtime.composition.values import COMPARE
from bespeak.runtime.expressions.pool import ExpressionFault, Expressions

_SHOWN: Final = 40
MISSING: Final = object()  # what a path leads to where nothing is; no condition holds for it


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


THRESHOLD_NAMES: Final = ("value", "previous")  # variables of an expression


async def check_threshold(
    threshold: Any, events: Sequence[str], expressions: Expressions, owner: str | None = None
) -> str | None:
    """Return what is wrong with a threshold for these events; None if it can be used."""
    if threshold is None:
        needing = sorted(MEASURED.intersection(events))
        return f"is missing; {needing[0]} changes with every call and needs one" if needing else None
    if isinstance(threshold, (int, float)):
        unfit = sorted(set(events) - NUMBERS)
        return f"is a number, but {unfit[0]} has no number to compare" if unfit else None
    if len(events) != 1:
        return "is a condition, which takes one event; use one monitor for each event"
    if isinstance(threshold, Mapping):
        fault = find_fault(threshold)
    else:
        fault = await expressions.check(threshold, THRESHOLD_NAMES, owner)
    return None if fault is None else f"cannot be used: {fault}"


async def is_beyond(
    threshold: Any, value: Any, previous: Any, expressions: Expressions, owner: str | None = None
) -> bool | ExpressionFault:
    """Return True if a value is on the far side of a threshold."""
    if isinstance(threshold, (int, float)):
        return holds({"gte": threshold}, value)
    if isinstance(threshold, Mapping):
        return holds(threshold, value)
    found = await expressions.evaluate(threshold, {"value": value, "previous": previous}, owner)
    if isinstance(found, bool | ExpressionFault):
        return found
    return ExpressionFault("the expression must be true or false")


def is_news(threshold: Any, *, was: bool, now: bool) -> bool:
    """Return True if the change of sides is worth a notification."""
    return was != now if isinstance(threshold, (int, float)) else now and not was
