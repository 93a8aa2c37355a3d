""""""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.data.ledger import COLUMNS, ROWS, column

from bespeak.contract.data_set import read_column
from bespeak.errors import DataSourceError
from bespeak.extensions.data.query import (
    LONGEST_CURSOR,
    DataFilter,
    DataQuery,
    from_position,
    read_cursor,
    select,
    to_comparable,
    to_json,
    to_position,
    write_cursor,
)


def test_value_of_a_filter_is_found_by_column_and_operator() -> None:
    query = DataQuery(limit=1, filters=(DataFilter("a", "eq", 1), DataFilter("a", "max", 2), DataFilter("b", "eq", 3)))
    assert (query.value("a"), query.value("a", "max"), query.value("b", "min"), query.value("c")) == (1, 2, None, None)


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


QUERY = DataQuery(limit=10, filters=(DataFilter("account", "eq", "a-1"),), order=(("memo", False), ("id", True)))
ORDER = [column("memo"), column("id")]


@given(st.none() | st.text(max_size=50), st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_position_survives(memo: str | None, number: int) -> None:
    cursor = write_cursor(QUERY, [memo, number], None)
    assert read_cursor(cursor, QUERY, ORDER) == ((memo, number), None)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_any_other_text_is_refused(text: str) -> None:
    assert isinstance(read_cursor(text, QUERY, ORDER), str)


def test_cursor_belongs_to_filters_and_order_but_not_to_the_size_of_pages() -> None:
    cursor = write_cursor(QUERY, ["a", 1], None)
    other = DataQuery(limit=99, columns=("id",), filters=QUERY.filters, order=QUERY.order)
    assert read_cursor(cursor, other, ORDER) == (("a", 1), None)
    wrong = read_cursor(cursor, DataQuery(limit=10, order=QUERY.order), ORDER)
    assert wrong == "the cursor belongs to another query: keep filters and order between pages"


def test_skipping_is_bounded_and_only_for_rows_without_a_key() -> None:
    loose = DataQuery(limit=1, order=QUERY.order, skip=0)
    assert read_cursor(write_cursor(loose, ["a", 1], 3), loose, ORDER) == (("a", 1), 3)
    for skip in (-1, 10**9, None):
        assert isinstance(read_cursor(write_cursor(loose, ["a", 1], skip), loose, ORDER), str)
    strict = DataQuery(limit=1, order=QUERY.order)
    assert isinstance(read_cursor(write_cursor(strict, ["a", 1], 3), strict, ORDER), str)


def test_cursors_of_usual_rows_are_short() -> None:
    assert len(write_cursor(QUERY, ["x" * 100, 2**62], None)) < LONGEST_CURSOR / 10


NAMED = {column.name: column for column in COLUMNS}


def test_rows_without_a_value_are_last_in_both_directions() -> None:
    for descending in (False, True):
        rows = select(ROWS, NAMED, DataQuery(limit=9, order=(("memo", descending), ("id", False))))
        assert rows[-1]["id"] == 2


def test_position_skips_equal_rows_by_their_number() -> None:
    query = DataQuery(limit=9, order=(("account", False),), after=("a-1",), skip=3)
    assert [row["id"] for row in select(ROWS, NAMED, query)] == [6, 3, 5]


def test_row_without_a_value_meets_no_filter() -> None:
    query = DataQuery(limit=9, order=(("id", False),), filters=(DataFilter("amount", "max", 10**9),))
    assert [row["id"] for row in select(ROWS, NAMED, query)] == [1, 2, 4, 5, 6]
