"""Thresholds: when a new value is worth a notification.

Without one, every change is. A number is crossed in either direction; comparisons such as `{"lt": 0.5}` and an
expression begin to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.runtime.condition import find_fault, holds
from bespeak.runtime.expressions.pool import ExpressionFault, Expressions
from bespeak.runtime.monitors.target import MEASURED, NUMBERS

NAMES: Final = ("value", "previous")
"""Variables of an expression."""


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
        fault = await expressions.check(threshold, NAMES, owner)
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
