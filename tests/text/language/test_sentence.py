"""The words of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.language.sentence import LONGEST, is_english, word_set, words


def test_only_the_first_sentence_counts() -> None:
    assert [word.lower for word in words("Books a table. Then cancels it.")] == ["books", "a", "table"]


def test_a_point_inside_a_word_ends_nothing() -> None:
    assert [word.lower for word in words("Reads file.txt now")] == ["reads", "file", "txt", "now"]


def test_tag_in_brackets_is_skipped() -> None:
    assert words("[BETA] Lists rooms")[0].text == "Lists"


@given(st.text())
def test_every_word_has_its_offset(text: str) -> None:
    for word in words(text):
        assert text[word.start : word.end] == word.text
        assert word.end <= LONGEST


@pytest.mark.parametrize("text", ["Books a table", "Get rooms", "Lists naïve results of the day"])
def test_english_is_detected(text: str) -> None:
    assert is_english(words(text))


@pytest.mark.parametrize("text", ["", "Gibt eine Liste zurück", "Envoyer un message", "予約する", "Crea una reserva"])
def test_other_languages_are_not_detected_as_english(text: str) -> None:
    assert not is_english(words(text))


def test_list_of_words_is_joined_to_one_text() -> None:
    assert word_set(" a  b\nc ") == {"a", "b", "c"}
