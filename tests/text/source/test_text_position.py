"""Lines and columns: one way to count for one place and for many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.tree import Lines, Location, location_of

TEXTS = st.text("ab\n\r\u2028", max_size=20)


@given(TEXTS, st.integers(0, 20), st.integers(0, 5))
def test_lines_and_columns_match_an_editor(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    place = location_of(text, "x", start, end)
    lines = text.split("\n")
    assert sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1 == start
    assert sum(len(line) + 1 for line in lines[: place.end_line - 1]) + place.end_column - 1 == end
    assert place.column <= len(lines[place.line - 1]) + 1
    assert Lines(text, "x").location(start, end) == place


def test_location_without_an_end_has_no_end() -> None:
    assert location_of("a\nb", "x", 2) == Location("x", 2, 1) == Lines("a\nb", "x").location(2)


def test_location_is_printed_by_its_start() -> None:
    assert str(Location("x", 2, 1, 2, 9)) == "x:2:1"
