from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.data.ledger import column

from bespeak.runtime.data.query import LONGEST_CURSOR, DataFilter, DataQuery, read_cursor, write_cursor

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
