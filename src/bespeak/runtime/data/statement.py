"""SELECT statements of data sets. Names come from the source or its declaration; what callers send are parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bespeak.contract.data_set import DataColumn
from bespeak.runtime.data.query import DataFilter, DataQuery

_SIGNS = {"eq": "=", "min": ">=", "max": "<="}


class Dialect:
    """How one database writes expressions. The relation is always called `t`."""

    def selected(self, column: DataColumn) -> str:
        """Write a column in the list of results."""
        return self.compared(column)

    def compared(self, column: DataColumn) -> str:
        """Write a column in a comparison."""
        return f"t.{quote(column.name)}"

    def parameter(self, number: int, column: DataColumn, value: Any) -> str:
        """Write the parameter of this number, as something that `compared` can be compared with."""
        raise NotImplementedError

    def bound(self, column: DataColumn, value: Any) -> Any:
        """Return the value as the driver takes it."""
        raise NotImplementedError

    def contains(self, left: str, right: str) -> str:
        """Write a test for a text within a text, regardless of case."""
        return f"strpos(lower({left}), lower({right})) > 0"


def quote(name: str) -> str:
    """Quote an identifier, in standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def as_relation(query: str) -> str:
    """Make a relation of an operator's SELECT. The line break ends a comment at its end."""
    return f"({query.strip().rstrip(';')}\n)"


class Statement:
    """One SELECT, with its parameters."""

    def __init__(self, dialect: Dialect, relation: str, columns: Mapping[str, DataColumn], query: DataQuery) -> None:
        self.parameters: list[Any] = []
        self._dialect = dialect
        self._columns = columns
        where = [self._condition(one) for one in query.filters]
        if query.after is not None:
            where.append(self._position(query))
        order = [part for name, descending in query.order for part in self._ordered(columns[name], descending)]
        names = [f"{dialect.selected(columns[name])} AS {quote(name)}" for name in query.columns]
        self.text = (
            f"SELECT {', '.join(names)} FROM {relation} AS t"
            + (f" WHERE {' AND '.join(where)}" if where else "")
            + (f" ORDER BY {', '.join(order)}" if order else "")
            + f" LIMIT {query.limit:d} OFFSET {query.skip or 0:d}"
        )

    def _add(self, column: DataColumn, value: Any) -> str:
        self.parameters.append(self._dialect.bound(column, value))
        return self._dialect.parameter(len(self.parameters), column, value)

    def _condition(self, one: DataFilter) -> str:
        column = self._columns[one.column]
        left = self._dialect.compared(column)
        if one.op == "contains":
            return self._dialect.contains(left, self._add(column, one.value))
        if one.op == "in":
            return f"{left} IN ({', '.join(self._add(column, value) for value in one.value)})"
        return f"{left} {_SIGNS[one.op]} {self._add(column, one.value)}"

    def _ordered(self, column: DataColumn, descending: bool) -> list[str]:
        left = self._dialect.compared(column)
        # Databases disagree on the place of NULL. Without the first term an index can give the order.
        return [*([f"({left} IS NULL)"] if column.nullable else []), f"{left} DESC" if descending else left]

    def _position(self, query: DataQuery) -> str:
        """Write the condition for rows behind a position, or at it if rows there are skipped by their number."""
        assert query.after is not None
        rest = "TRUE" if query.skip is not None else "FALSE"
        for (name, descending), value in reversed(list(zip(query.order, query.after, strict=True))):
            column = self._columns[name]
            left = self._dialect.compared(column)
            if value is None:  # nothing comes after the rows without a value, and only they are equal
                rest = f"({left} IS NULL AND {rest})"
                continue
            right = self._add(column, value)
            behind = f"{left} {'<' if descending else '>'} {right}"
            null = f" OR {left} IS NULL" if column.nullable else ""
            rest = f"({behind}{null} OR ({left} = {right} AND {rest}))"
        return rest
