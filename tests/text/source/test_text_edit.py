"""Edits of a text: each in its place, none on top of another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.tree import Span, TextEdit, apply_edits, deletion, insertion


def test_edits_are_made_in_the_order_of_their_places() -> None:
    made = [deletion(4, 5), insertion(0, "<"), TextEdit(Span(1, 3), "x"), insertion(6, ">")]
    assert apply_edits("abcdef", made) == "<axdf>"


def test_first_of_two_overlapping_edits_is_applied() -> None:
    assert apply_edits("abcdef", [TextEdit(Span(2, 5), "y"), TextEdit(Span(1, 3), "x")]) == "axdef"


def test_two_insertions_at_one_place_keep_their_order() -> None:
    assert apply_edits("ab", [insertion(1, "x"), insertion(1, "y")]) == "axyb"


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text(max_size=3))))
def test_untouched_text_is_unchanged(text: str, drawn: list[tuple[int, int, str]]) -> None:
    places = [(min(one, other, len(text)), min(max(one, other), len(text)), new) for one, other, new in drawn]
    after = apply_edits(text, [TextEdit(Span(start, end), new) for start, end, new in places])
    first = min((start for start, _, _ in places), default=len(text))
    last = max((end for _, end, _ in places), default=len(text))
    assert after.startswith(text[:first])
    assert after.endswith(text[last:])
