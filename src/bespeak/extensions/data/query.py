"""Queries of data sets: selection, order and position. Functions that are a source may take them as a hint.

Cursors tell where a page ended. They are neither secret nor signed, since they cannot widen what the filters give.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.errors import DataSourceError

OPERATORS: Final = ("eq", "min", "max", "contains", "in")
"""`min` and `max` include their value; `contains` ignores case. No operator selects a row without a value."""


@dataclass(frozen=True, slots=True)
class DataFilter:
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


_DIGITS: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:E[+-]?[0-9]{1,3})?")  # as Decimal writes it
_TRUTH: Final = {0: False, 1: True, "true": True, "false": False}


def to_json(column: DataColumn, value: Any) -> Any:
    """Convert a value of a source to that of an answer; None for none, such as NaN. Raises DataSourceError."""
    if value is None:
        return None
    try:
        return _convert(column.kind, value)
    except (ValueError, TypeError, ArithmeticError, msgspec.DecodeError) as error:
        raise DataSourceError(f"the column {column.name!r} has a value that is not of type {column.kind}") from error


def _convert(kind: str, value: Any) -> Any:
    match kind:
        case "string":
            return value if isinstance(value, str) else str(value)
        case "integer":
            number = value if isinstance(value, int) else Decimal(value)
            return int(number) if not isinstance(value, bool) and number == int(number) else _refuse(value)
        case "number":
            real = value if isinstance(value, int) else float(value)
            return _refuse(value) if isinstance(value, bool) else real if math.isfinite(real) else None
        case "boolean":
            return _TRUTH[value] if value in _TRUTH else _refuse(value)
        case "date":
            text = value.isoformat()[:10] if isinstance(value, date) else value
            return date.fromisoformat(text).isoformat()
        case "date-time":
            return instant(value).isoformat().replace("+00:00", "Z")
    found = msgspec.json.decode(value) if isinstance(value, str | bytes) else msgspec.to_builtins(value)
    return found if isinstance(found, list if kind == "array" else dict | list) else _refuse(found)


def _refuse(value: Any) -> Any:
    raise ValueError(value)


def instant(value: Any) -> datetime:
    """Parse a time in ISO 8601, or take one; without an offset it is in UTC."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def to_position(column: DataColumn, value: Any) -> Any:
    """Convert a value of a source to that of a cursor: like an answer's, but numbers keep all digits."""
    exact = isinstance(value, Decimal) and value.is_finite()
    return str(value) if exact else to_json(column, value)


def from_position(column: DataColumn, value: Any) -> Any:
    """Return the value of a cursor, which may be forged. Raises DataSourceError if it is not of the column's type."""
    text = isinstance(value, str)
    if column.kind in ("integer", "number") and text:
        fits = _DIGITS.fullmatch(value) is not None
    else:
        fits = value is None or text is (column.kind != "boolean" and column.kind not in ("integer", "number"))
    if not fits:
        raise DataSourceError(f"the value of {column.name!r} is not of type {column.kind}")
    return value if text and column.kind in ("string", "integer", "number") else to_json(column, value)


def to_comparable(column: DataColumn, value: Any) -> Any:
    """Convert a value of an answer, a filter or a cursor to one that Python can sort."""
    if value is None:
        return None
    if column.kind == "date-time":
        return instant(value)
    return Decimal(value) if column.kind in ("integer", "number") and isinstance(value, str) else value


def fits(column: DataColumn, op: str, value: Any) -> bool:
    """Return True if a column can be compared with a value that was sent."""
    if column.kind in ("integer", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool) and op != "contains"
    if column.kind == "boolean":
        return isinstance(value, bool) and op in ("eq", "in")
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
        to_json(column, value)
    except (DataSourceError, UnicodeEncodeError):
        return False
    return op != "contains" or column.kind == "string"


def as_value(column: DataColumn, text: str) -> Any:
    """Return the value that a text of an address means for a column; None if it means none."""
    if column.kind in ("integer", "number"):
        return msgspec.json.decode(text) if _DIGITS.fullmatch(text) and not text.startswith(("00", "-00")) else None
    return text if fits(column, "eq", text) else None


LONGEST_CURSOR: Final = 4096  # maximum length of a cursor in characters
_MOST_SKIPPED: Final = 1_000_000
_FOREIGN: Final = "the cursor is not one of this endpoint"


class _PageCursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    query: str
    after: list[bool | int | float | str | None]
    skip: int | None = None


def write_cursor(query: DataQuery, after: Sequence[Any], skip: int | None) -> str:
    text = msgspec.json.encode(_PageCursor(_digest(query), list(after), skip))
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def read_cursor(text: str, query: DataQuery, columns: Sequence[DataColumn]) -> tuple[tuple[Any, ...], int | None] | str:
    """Return the position and the rows to skip, or what is wrong. `columns` are those of the query's order."""
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_PageCursor)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return _FOREIGN
    if cursor.query != _digest(query):
        return "the cursor belongs to another query: keep filters and order between pages"
    if len(cursor.after) != len(columns) or (cursor.skip is None) is not (query.skip is None):
        return _FOREIGN
    if not 0 <= (cursor.skip or 0) <= _MOST_SKIPPED:
        return _FOREIGN
    try:
        return tuple(map(from_position, columns, cursor.after)), cursor.skip
    except DataSourceError:
        return _FOREIGN


def _digest(query: DataQuery) -> str:
    asked = [[(one.column, one.op, one.value) for one in query.filters], query.order]
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:12]


Row = Mapping[str, Any]


def select(rows: Iterable[Row], columns: Mapping[str, DataColumn], query: DataQuery) -> list[Row]:
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
