"""The words of a sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.language.sentence import LONGEST, LatePattern, is_english, is_several, word_set, words


def test_only_the_first_sentence_counts_and_a_point_in_a_word_or_a_tag_ends_nothing() -> None:
    assert [word.lower for word in words("Books a table. Then cancels it.")] == ["books", "a", "table"]
    assert [word.lower for word in words("Reads file.txt now")] == ["reads", "file", "txt", "now"]
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


@rows(
    "text",
    *("", "Books a table", "Books a table.", "Books a table, e.g. for two guests"),
    *("Books a table (i.e. a meal) for Dr. Smith at 5 p.m. today", "Uses v1.2 of the plan and example.com"),
    *("Finds flights in the U.S. and Canada", "Finds the house at No. 5 Main Road", "Books St. Mary for 2026-01-02."),
    *("Waits for more...", "Waits ... and then books", "Finds offices of Acme Inc. in Rome", "Costs approx. 5 euros"),
    *("Sends a letter to J. Smith", "Is the room free?", "部屋を予約します。"),
    "Books a table for the guest\nat the restaurant",
)
def test_one_sentence_is_counted_once(text: str) -> None:
    assert not is_several(text)


@rows(
    "text",
    *("Books a table. Sends a letter.", "Books a table. sends a letter", "Books it! Then pays."),
    *("Is it free? Tells the guest.", "Books a table (for two). Sends a letter", "部屋を予約します。通知します。"),
    *("Books a table\n\nSends a letter", "Books:\n- a table\n- a chair", "Books a table.\nThen pays for it"),
)
def test_several_sentences_are_counted(text: str) -> None:
    assert is_several(text)


@given(st.text(alphabet=".!? \n\"'Aa1…。"))
def test_any_text_is_counted(text: str) -> None:
    assert is_several(text) in (True, False)
    assert not is_several(text.replace(".", "").replace("!", "").replace("?", "").replace("\n", "").replace("。", ""))


def test_a_late_pattern_matches_as_a_compiled_one_does() -> None:
    late, compiled = LatePattern("a+B", re.IGNORECASE), re.compile("a+B", re.IGNORECASE)
    for text in ("", "ab", "xAAb", "b"):
        assert (late.search(text) is None) == (compiled.search(text) is None)
        assert (late.fullmatch(text) is None) == (compiled.fullmatch(text) is None)


def test_it_is_compiled_when_first_used_and_once() -> None:
    late = LatePattern("(")
    with pytest.raises(re.error):
        late.search("x")
    good = LatePattern("x")
    assert good.compiled is good.compiled
