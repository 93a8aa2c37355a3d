from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from bespeak.contract.data_set import read_column
from bespeak.errors import DataSourceError
from bespeak.runtime.data.query import from_position, to_comparable, to_json, to_position

PARIS = timezone(timedelta(hours=1))


def convert(kind: str, value: Any) -> Any:
    column = read_column("a", kind)
    assert column is not None
    return to_json(column, value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "text", "text"),
        ("string", 12, "12"),
        ("string", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("integer", 2**70, 2**70),
        ("integer", Decimal("3.0"), 3),
        ("integer", 3.0, 3),
        ("number", Decimal("10.10"), 10.1),
        ("number", "1.5", 1.5),
        ("number", float("nan"), None),
        ("number", float("-inf"), None),
        ("boolean", 1, True),
        ("boolean", False, False),
        ("date", date(2026, 1, 2), "2026-01-02"),
        ("date", datetime(2026, 1, 2, 23, tzinfo=UTC), "2026-01-02"),
        ("date", "2026-01-02", "2026-01-02"),
        ("date-time", datetime(2026, 1, 2, 1, tzinfo=PARIS), "2026-01-02T00:00:00Z"),
        ("date-time", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
        ("date-time", "2026-01-02 03:04:05+02", "2026-01-02T01:04:05Z"),
        ("array", "[1, 2]", [1, 2]),
        ("object", {"a": 1}, {"a": 1}),
        ("object", None, None),
    ],
)
def test_values_become_json_of_the_column_type(kind: str, value: Any, expected: Any) -> None:
    found = convert(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "x"),
        ("integer", 1.5),
        ("integer", True),
        ("integer", float("inf")),
        ("number", "x"),
        ("number", True),
        ("boolean", 2),
        ("boolean", "yes"),
        ("date", "01.02.2026"),
        ("date", "2026-01-02 10:00"),
        ("date", 5),
        ("date-time", "soon"),
        ("array", "{}"),
        ("object", "not json"),
        ("object", "1"),
    ],
)
def test_values_of_another_type_are_an_error_of_the_source(kind: str, value: Any) -> None:
    with pytest.raises(DataSourceError, match=f"'a' has a value that is not of type {kind}"):
        convert(kind, value)


def test_positions_keep_all_digits_and_can_be_compared() -> None:
    column = read_column("a", "number")
    assert column is not None
    digits = Decimal("12345678901234567890.12")
    position = to_position(column, digits)
    assert position == "12345678901234567890.12"
    assert to_comparable(column, from_position(column, position)) == digits
    assert to_position(column, 1.5) == 1.5


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 1),
        ("string", True),
        ("integer", "1; DROP"),
        ("number", "nan"),
        ("number", "1_0"),
        ("number", True),
        ("boolean", "true"),
        ("date", 20260102),
        ("date", "x"),
        ("date-time", "x"),
    ],
)
def test_forged_positions_are_refused(kind: str, value: Any) -> None:
    column = read_column("a", kind)
    assert column is not None
    with pytest.raises(DataSourceError):
        from_position(column, value)


def test_position_without_a_value_is_none() -> None:
    for kind in ("string", "integer", "number", "boolean", "date", "date-time"):
        column = read_column("a", kind)
        assert column is not None
        assert from_position(column, None) is None
