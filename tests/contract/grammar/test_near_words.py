"""Words suggested for an unknown text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.catalog.catalog import NearWords

WORDS = NearWords({"BOOK", "QUERY", "RESERVE", "DELIVER"})
letters = st.text(alphabet="ABCDEFGHIJ", min_size=1, max_size=10)


@pytest.mark.parametrize("text", ["BOK", "BOOOK", "BOAK", "OBOK", "book", "BOOKING"])
def test_typo_or_inflected_form_finds_the_intended_word(text: str) -> None:
    assert WORDS.near(text) == ["BOOK"]


@pytest.mark.parametrize("text", ["", "ZEBRA", "X" * 40, "B" * 20_000, "BO OK IT"])
def test_a_text_far_from_every_word_finds_none(text: str) -> None:
    assert WORDS.near(text) == []


@given(letters, st.integers(0, 9), st.sampled_from("ABCDEFGHIJ"))
def test_one_letter_more_less_or_other_is_found(word: str, at: int, letter: str) -> None:
    index = NearWords({word})
    at %= len(word)
    for slip in (word[:at] + letter + word[at:], word[:at] + word[at + 1 :], word[:at] + letter + word[at + 1 :]):
        assert word in index.near(slip)


@given(st.text(max_size=60), st.sets(letters, max_size=20))
def test_at_most_three_words_are_offered_and_all_of_them_exist(text: str, words: set[str]) -> None:
    found = NearWords(words).near(text)
    assert len(found) <= 3
    assert set(found) <= words
