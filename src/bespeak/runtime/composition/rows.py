"""Operations on lists: which rows are kept, in which order, how many, and which are picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bespeak.runtime.composition.comparison import COMPARE, Normal, normal
from bespeak.runtime.composition.scope import MISSING, Scope, UnmetError, is_there

_Value = Callable[[Scope, Any], Any]
_Condition = tuple[_Value, str, _Value | None]
"""Left side, which reads the row; operator; right side, which reads what surrounds the list."""


class Rows:
    """The rows of a list that a source selects."""

    def __init__(
        self,
        value: _Value,
        conditions: Sequence[_Condition],
        *,
        sort: _Value | None = None,
        limit: _Value | None = None,
        pick: str = "all",
        joined: int | None = None,
    ) -> None:
        """Prepare the operations.

        `joined` is the number of an equation that is read once for each item of a surrounding list. The rows are then
        found by an index: a join of two long lists must not compare each with each.
        """
        self._value = value
        self._conditions = conditions
        self._sort = sort
        self._limit = limit
        self._pick = pick
        self._joined = joined

    def read(self, scope: Scope, item: Any) -> Any:
        """Return the list, the picked row, or MISSING. Raises UnmetError if a row must be picked and cannot be."""
        rows = self._kept(scope, item)
        if rows is None:
            return MISSING if self._pick == "all" else _picked([], self._pick)
        if self._sort is not None:
            rows = _sorted(rows, self._sort(scope, item))
        if self._limit is not None:
            rows = _limited(rows, self._limit(scope, item))
        return rows if self._pick == "all" else _picked(rows, self._pick)

    def _kept(self, scope: Scope, item: Any) -> list[Any] | None:
        """Return the rows that meet all conditions; None if there is no list."""
        tests: list[Callable[[Any], bool]] = []
        rows: list[Any] | None = None
        for index, (left, op, right) in enumerate(self._conditions):
            wanted = MISSING if right is None else right(scope, item)
            if right is not None and not is_there(wanted):
                continue
            if index == self._joined:
                rows = self._index(scope, item, left).get(normal(wanted), [])
            else:
                tests.append(_test(scope, left, op, wanted))
        if rows is None:
            rows = _as_list(self._value(scope, item))
        if rows is None or not tests:
            return rows
        scope.spend(len(rows))
        return [row for row in rows if all(test(row) for test in tests)]

    def _index(self, scope: Scope, item: Any, left: _Value) -> dict[Normal, list[Any]]:
        """Return the rows by the value of the left side, which is computed once for all items."""
        found: dict[Normal, list[Any]] | None = scope.indexes.get(id(self))
        if found is None:
            found = scope.indexes[id(self)] = {}
            rows = _as_list(self._value(scope, item)) or []
            scope.spend(len(rows))
            for row in rows:
                key = left(scope, row)
                if is_there(key):
                    found.setdefault(normal(key), []).append(row)
        return found


def _as_list(value: Any) -> list[Any] | None:
    """Return a list; a single value is a list of one. None if there is no value."""
    if type(value) is list:
        return value
    return [value] if is_there(value) else None


def _test(scope: Scope, left: _Value, op: str, wanted: Any) -> Callable[[Any], bool]:
    if op in ("present", "absent"):
        return lambda row: is_there(left(scope, row)) == (op == "present")
    holds = COMPARE[op](wanted)

    def test(row: Any) -> bool:
        found = left(scope, row)
        return holds(found) if is_there(found) else op == "ne"

    return test


def _sorted(rows: list[Any], order: Any) -> list[Any]:
    """Sort rows by fields, `-field` for descending. Rows without the field come last; equal ones keep their order."""
    fields = order if type(order) is list else [order]
    if any(type(field) is not str or not field for field in fields):
        raise UnmetError("invalid-order", "the order of a list must be the name of a field, or a list of names")
    for field in reversed(fields):
        names = tuple(field.removeprefix("-").split("."))
        keyed = [(_first(row, names), row) for row in rows]
        there = [(normal(key), row) for key, row in keyed if key is not None]
        there.sort(key=_key, reverse=field.startswith("-"))
        rows = [row for _, row in there] + [row for key, row in keyed if key is None]
    return rows


def _key(pair: tuple[Normal, Any]) -> Normal:
    return pair[0]


def _first(row: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        row = row.get(name) if type(row) is dict else None
    return row


def _limited(rows: list[Any], limit: Any) -> list[Any]:
    if not is_there(limit):
        return rows
    if type(limit) is not int or limit < 0:
        raise UnmetError("invalid-limit", "the limit of a list must be a whole number that is not negative")
    return rows[:limit]


def _picked(rows: list[Any], pick: str) -> Any:
    if not rows:
        raise UnmetError("no-element", "no element of the list fits")
    if pick == "only" and len(rows) > 1:
        raise UnmetError("several-elements", f"{len(rows)} elements of the list fit, and only one may")
    return rows[0]
