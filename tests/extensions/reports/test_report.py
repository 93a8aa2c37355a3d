"""Cells are short and printable; numbers are summed by label."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.reports.report import MOST_BARS, MOST_IDS, ReportScope, as_cell, read_scope, sum_by


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


DAY = 86400.0
NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("scope", "found", "text"),
    [
        ("all", ReportScope(), "all"),
        ("7d", ReportScope(start=NOW - 7 * DAY), "2027-01-08T08:00:00Z to now"),
        (
            "2026-11-01/2026-11-02",
            ReportScope(1793491200.0, 1793577600.0),
            "2026-11-01T00:00:00Z to 2026-11-02T00:00:00Z",
        ),
        ("/2026-11-02", ReportScope(end=1793577600.0), "the beginning to 2026-11-02T00:00:00Z"),
        ({"from": "2026-11-01"}, ReportScope(start=1793491200.0), "2026-11-01T00:00:00Z to now"),
        ({"ids": ["a", "b", "a"]}, ReportScope(ids=("a", "b")), "2 records by id"),
        ({"data": "rooms", "filters": {"n": 1}}, ReportScope(data="rooms", filters={"n": 1}), "rooms"),
        ({}, ReportScope(), "all"),
    ],
)
def test_a_scope_is_read_and_written(scope: Any, found: ReportScope, text: str) -> None:
    assert read_scope(scope, NOW) == found
    assert str(found) == text


@pytest.mark.parametrize(
    "scope",
    [
        *("week", "2026-13-01/2026-12-01", "2026-12-01/2026-11-01", "a/b", "\0", "9" * 4000),
        *({"from": 1}, {"since": "2026"}, {"ids": "a"}, {"ids": [1]}, {"ids": ["x"] * (MOST_IDS + 1)}, {"ids": [""]}),
        *({"data": 1}, {"data": "a\nb"}, {"filters": []}, {"x" * 1_000_000: 1}, {"ids": ["x" * 1_000_000]}),
    ],
)
def test_what_is_not_a_scope_is_explained_briefly(scope: Any) -> None:
    found = read_scope(scope, NOW)
    assert isinstance(found, str)
    assert len(found) < 200


VALUES = st.none() | st.integers() | st.text(max_size=30) | st.lists(st.text(max_size=5), max_size=3)


@given(st.text(max_size=40) | st.dictionaries(st.sampled_from(["from", "to", "ids", "data", "filters", "x"]), VALUES))
def test_any_text_or_object_is_a_scope_or_a_fault(scope: Any) -> None:
    assert isinstance(read_scope(scope, NOW), (ReportScope, str))
