"""Cells are short and printable; numbers are summed by label."""

from __future__ import annotations

from bespeak.runtime.reports.report import MOST_BARS, as_cell, sum_by


def test_a_cell_is_a_number_or_one_bounded_line() -> None:
    assert [as_cell(value) for value in (None, 1, 2.5, True, "a\nb\0c", {"n": [1]})] == [
        *(None, 1, 2.5, True, "a b c", '{"n":[1]}')
    ]
    assert as_cell("\ud800") == " "
    long = as_cell("x" * 1_000_000)
    assert isinstance(long, str)
    assert (len(long), long[-1]) == (300, "…")


def test_numbers_are_summed_largest_first() -> None:
    assert list(sum_by([("a", 1), ("b", 5), ("a", 2)]).items()) == [("b", 5), ("a", 3)]


def test_labels_beyond_the_largest_share_a_bar() -> None:
    sums = sum_by((f"l{n:03}", n) for n in range(100))
    assert len(sums) == MOST_BARS
    assert sums["others"] == sum(range(100)) - sum(range(81, 100))
