"""JSON Pointers: escapes, and the way up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.pointer import child, parent, pointer, unescaped


def test_slashes_and_tildes_are_escaped() -> None:
    assert pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"


def test_the_whole_document_is_its_own_parent() -> None:
    assert parent("") == ""


@given(st.lists(st.text() | st.integers(min_value=0)), st.text())
def test_the_parent_of_a_child_is_where_one_came_from(parts: list[str | int], part: str) -> None:
    at = pointer(parts)
    assert parent(child(at, part)) == at


@given(st.text(alphabet="~01/a") | st.text())
def test_a_part_stands_for_the_key_it_was_made_of(key: str) -> None:
    assert unescaped(child("", key)[1:]) == key
