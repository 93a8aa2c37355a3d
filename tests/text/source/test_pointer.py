"""JSON Pointers: escapes, and the way up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.pointer import ABSENT, child, is_index, parent, pointer, unescaped, value_at


def test_slashes_and_tildes_are_escaped_and_the_whole_document_is_its_own_parent() -> None:
    assert pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"
    assert parent("") == ""


@given(st.lists(st.text() | st.integers(min_value=0)), st.text())
def test_parent_of_a_child_is_the_original_pointer(parts: list[str | int], part: str) -> None:
    at = pointer(parts)
    assert parent(child(at, part)) == at


@given(st.text(alphabet="~01/a") | st.text())
def test_part_unescapes_to_its_key(key: str) -> None:
    assert unescaped(child("", key)[1:]) == key


@pytest.mark.parametrize(
    ("part", "counts"), [("0", True), ("1", True), ("2", False), ("-1", False), ("", False), ("9" * 5000, False)]
)
def test_only_a_number_within_the_list_is_an_index(part: str, counts: bool) -> None:
    assert is_index(part, [1, 2]) is counts


DATA = {"a/b": [10, {"~": None}], "c": {}}


@pytest.mark.parametrize(
    ("at", "value"), [("", DATA), ("/a~1b/0", 10), ("/a~1b/1/~0", None), ("/c", {}), ("/a~1b", DATA["a/b"])]
)
def test_pointer_leads_to_its_value(at: str, value: object) -> None:
    assert value_at(DATA, at, ABSENT) == value


@pytest.mark.parametrize("at", ["/x", "/a~1b/2", "/a~1b/-1", "/a~1b/x", "/c/0", "/a~1b/0/0", "/a/b", "/"])
def test_a_pointer_to_nothing_gives_the_default(at: str) -> None:
    assert value_at(DATA, at, ABSENT) is ABSENT
