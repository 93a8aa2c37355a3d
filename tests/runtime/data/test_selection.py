from __future__ import annotations

from tests.runtime.data.ledger import COLUMNS, ROWS

from bespeak.runtime.data.query import DataFilter, DataQuery, select

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
