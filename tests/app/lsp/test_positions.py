"""Places as an editor counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind, Range

from bespeak.app.lsp.cursor import Positions
from bespeak.text.diagnostics.report import Replacement
from bespeak.text.source.tree import Location, Span, TextEdit

UTF_8, UTF_16, UTF_32 = PositionEncodingKind.Utf8, PositionEncodingKind.Utf16, PositionEncodingKind.Utf32


@pytest.mark.parametrize(("encoding", "character"), [(UTF_8, 7), (UTF_16, 5), (UTF_32, 4)])
def test_characters_count_in_the_units_agreed_on(encoding: PositionEncodingKind, character: int) -> None:
    positions = Positions("a: 🛏b\n", encoding)
    assert positions.position(4) == Position(0, character)
    assert positions.offset(Position(0, character)) == 4


@pytest.mark.parametrize("text", ["a: 1\nb: 2", "a: 1\r\nb: 2", "\ufeffa: 1\nb: 2", "\ufeffa: 1\r\nb: 2"])
def test_a_finding_has_the_range_of_its_word(text: str) -> None:
    positions = Positions(text)
    place = positions.place(Location("x", 2, 4, 2, 5))
    assert text[positions.offset(place.start) : positions.offset(place.end)] == "2"
    first = positions.place(Location("x", 1, 4, 1, 5))
    assert text[positions.offset(first.start) : positions.offset(first.end)] == "1"


def test_carriage_return_alone_ends_a_line_for_the_editor_and_a_separator_of_unicode_does_not() -> None:
    positions = Positions("a: 1\rb: 2\nc: 3")
    assert positions.place(Location("x", 1, 9, 1, 10)).start == Position(1, 3)
    assert positions.place(Location("x", 2, 1, 2, 2)).start == Position(2, 0)
    assert Positions("a\u2028b\x0cc\nd").position(6) == Position(1, 0)


@pytest.mark.parametrize(
    ("text", "location", "end"),
    [("semantic: x", Location("x", 1, 1), 8), ("abc\ndef", None, 3), ("abc\ndef", Location("x"), 3)],
)
def test_without_an_end_a_finding_is_on_its_word_or_first_line(text: str, location: Location | None, end: int) -> None:
    assert Positions(text).place(location) == Range(Position(0, 0), Position(0, end))


def test_position_beyond_the_text_is_its_end_and_a_repair_has_offsets_and_line_ends_of_the_text() -> None:
    positions = Positions("ab\nc")
    assert positions.offset(Position(0, 99)) == 2
    assert positions.offset(Position(99, 0)) == 4
    assert positions.place(Location("x", 99, 1)).start == Position(1, 1)
    assert Positions("a: 🛏b\nccc").edit(Replacement(2, 2, 2, 3, "x")) == TextEdit(Span(7, 8), "x")
    edit = Positions("a: 1\r\nc: 3\r\n").edit(Replacement(1, 5, 1, 5, "\nb: 2"))
    assert edit == TextEdit(Span(4, 4), "\r\nb: 2")


@given(st.text(alphabet="a🛏é\n\r\u2028\ud800", max_size=30), st.sampled_from([UTF_8, UTF_16, UTF_32]))
def test_every_offset_comes_back(text: str, encoding: PositionEncodingKind) -> None:
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        back = positions.offset(positions.position(offset))
        # Between the two characters of a line end there is no position.
        assert back == offset or text[back : offset + 1] == "\r\n"
