"""What is read from a data set: selection, order and position. Functions that are a source may take it as a hint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

OPERATORS: Final = ("eq", "min", "max", "contains", "in")
"""`min` and `max` include their value; `contains` ignores case. No operator selects a row without a value."""


@dataclass(frozen=True, slots=True)
class DataFilter:
    """A condition on one column."""

    column: str
    op: str
    """One of OPERATORS."""
    value: Any
    """As it was sent, valid by the schema of the column: dates and times are texts in ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataQuery:
    """A read of at most `limit` rows. Rows without a value in a column of the order come last."""

    limit: int
    columns: tuple[str, ...] = ()
    """Columns that the answer or the order needs."""
    filters: tuple[DataFilter, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    """Columns to sort by, each with True for descending. The last ones identify a row."""
    after: tuple[Any, ...] | None = None
    """Values of the order's columns where the page before ended; None for the first page."""
    skip: int | None = None
    """Rows at exactly `after` that were read before; None if the order's columns identify a row."""

    def value(self, column: str, op: str = "eq") -> Any:
        """Return the value that a column is compared with; None if it is not."""
        return next((one.value for one in self.filters if (one.column, one.op) == (column, op)), None)
