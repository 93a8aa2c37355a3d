"""Selecting rows in memory: what a database does with a query, for functions that return more than was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any

from bespeak.contract.data_set import DataColumn
from bespeak.runtime.data.query import DataFilter, DataQuery
from bespeak.runtime.data.value import to_comparable, to_json

Row = Mapping[str, Any]


def select(rows: Iterable[Row], columns: Mapping[str, DataColumn], query: DataQuery) -> list[Row]:
    """Return the rows of a page, in order."""
    tests = [_test(columns[one.column], one) for one in query.filters]
    order = [columns[name] for name, _ in query.order]

    def position(row: Row) -> list[Any]:
        return [to_comparable(column, to_json(column, row.get(column.name))) for column in order]

    def compare(one: list[Any], other: list[Any]) -> int:
        for (_, descending), mine, theirs in zip(query.order, one, other, strict=True):
            if mine == theirs:
                continue
            if mine is None or theirs is None:
                return 1 if mine is None else -1
            return -1 if (mine < theirs) is not descending else 1
        return 0

    found = [(position(row), row) for row in rows if all(test(row) for test in tests)]
    if query.after is not None:
        start = [to_comparable(column, value) for column, value in zip(order, query.after, strict=True)]
        least = 1 if query.skip is None else 0
        found = [one for one in found if compare(one[0], start) >= least]
    found.sort(key=lambda one: cmp_to_key(compare)(one[0]))
    skip = query.skip or 0
    return [row for _, row in found[skip : skip + query.limit]]


def _test(column: DataColumn, wanted: DataFilter) -> Callable[[Row], bool]:
    compare = _OPERATORS[wanted.op]
    many = wanted.op == "in"
    value = [to_comparable(column, one) for one in wanted.value] if many else to_comparable(column, wanted.value)

    def test(row: Row) -> bool:
        own = to_comparable(column, to_json(column, row.get(column.name)))
        return own is not None and compare(own, value)

    return test


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda own, value: bool(own == value),
    "min": lambda own, value: bool(own >= value),
    "max": lambda own, value: bool(own <= value),
    "contains": lambda own, value: value.lower() in own.lower(),
    "in": lambda own, value: own in value,
}
