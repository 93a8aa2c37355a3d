"""Values of columns: from a source to JSON, and to something that can be compared."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.errors import DataSourceError

_DIGITS: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:E[+-]?[0-9]{1,3})?")
"""A number as Decimal writes it."""
_TRUTH: Final = {0: False, 1: True, "true": True, "false": False}


def to_json(column: DataColumn, value: Any) -> Any:
    """Convert a value of a source to that of an answer; None for none, such as NaN, which JSON does not have.

    Raises DataSourceError if it does not have the type of the column.
    """
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
            return _integer(value)
        case "number":
            return _number(value)
        case "boolean":
            return _TRUTH[value] if value in _TRUTH else _refuse(value)
        case "date":
            text = value.isoformat()[:10] if isinstance(value, date) else value
            return date.fromisoformat(text).isoformat()
        case "date-time":
            return instant(value).isoformat().replace("+00:00", "Z")
    found = msgspec.json.decode(value) if isinstance(value, str | bytes) else msgspec.to_builtins(value)
    return found if isinstance(found, list if kind == "array" else dict | list) else _refuse(found)


def _integer(value: Any) -> int:
    number = value if isinstance(value, int) else Decimal(value)
    return int(number) if not isinstance(value, bool) and number == int(number) else _refuse(value)


def _number(value: Any) -> int | float | None:
    number: int | float = value if isinstance(value, int) else float(value)
    if isinstance(value, bool):
        _refuse(value)
    return number if math.isfinite(number) else None


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
