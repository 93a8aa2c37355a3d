from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.grammar.syntax import is_method_name


@pytest.mark.requirement("API-3.2-1")
@pytest.mark.parametrize("method", ["ABC", "BOOK", "A" * 32])
def test_three_to_thirty_two_capital_letters_are_a_method_name(method: str) -> None:
    assert is_method_name(method)


@pytest.mark.requirement("API-3.2-1")
@pytest.mark.parametrize(
    "method",
    ["", "AB", "A" * 33, "book", "Book", "BOOK2", "BOOK_IT", "X-BOOK", "BOOK\n", " BOOK", "BÜCHEN", "ＢＯＯＫ"],
)
def test_anything_else_is_not_a_method_name(method: str) -> None:
    assert not is_method_name(method)


@given(st.text(alphabet="ABCabc09_-é\n", max_size=40))
def test_the_pattern_of_the_draft_decides(method: str) -> None:
    assert is_method_name(method) == (re.search(r"\A[A-Z]+\Z", method) is not None and 3 <= len(method) <= 32)
