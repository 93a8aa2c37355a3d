"""Comparisons of JSON values: numbers, dates and times by value, other texts by characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
_encode = msgspec.json.Encoder(order="sorted").encode

Normal = tuple[int, Any]
"""Kind and value: equal values have equal normals, and normals of one kind have an order. They are hashable."""


def normal(value: Any) -> Normal:
    """Return the form of a value by which it is compared."""
    kind = type(value)
    if kind is str:
        return _normal_text(value)
    if kind is int or kind is float:
        return 0, value
    if kind is bool:
        return 3, value
    return 4, _encode(value)


def _normal_text(text: str) -> Normal:
    if _DATE.fullmatch(text) is None:
        return 2, text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 2, text
    return 1, moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


Test = Callable[[Any], bool]
"""Compares a value with the wanted one."""


def _equal(wanted: Any) -> Test:
    right = normal(wanted)
    return lambda value: normal(value) == right


def _unequal(wanted: Any) -> Test:
    right = normal(wanted)
    return lambda value: normal(value) != right


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def compare(wanted: Any) -> Test:
        kind, right = normal(wanted)

        def test(value: Any) -> bool:
            left = normal(value)
            return left[0] == kind and holds(left[1], right)

        return test

    return compare


def _containing(wanted: Any) -> Test:
    right = normal(wanted)
    text = wanted.casefold() if type(wanted) is str else None

    def test(value: Any) -> bool:
        if type(value) is list:
            return any(normal(each) == right for each in value)
        return text is not None and type(value) is str and text in value.casefold()

    return test


def _within(wanted: Any) -> Test:
    members = {normal(each) for each in wanted} if type(wanted) is list else set()
    return lambda value: normal(value) in members


COMPARE: Final[Mapping[str, Callable[[Any], Test]]] = {
    "eq": _equal,
    "ne": _unequal,
    "lt": _ordered(lambda left, right: left < right),
    "lte": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "gte": _ordered(lambda left, right: left >= right),
    "contains": _containing,
    "in": _within,
}
"""Comparisons by operator, with the wanted value on the right. Values of two kinds are neither equal nor in order."""
