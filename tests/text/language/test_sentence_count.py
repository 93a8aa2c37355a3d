from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.language.sentence import is_several


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Books a table",
        "Books a table.",
        "Books a table, e.g. for two guests",
        "Books a table (i.e. a meal) for Dr. Smith at 5 p.m. today",
        "Uses v1.2 of the plan and example.com",
        "Finds flights in the U.S. and Canada",
        "Finds the house at No. 5 Main Road",
        "Books St. Mary for 2026-01-02.",
        "Waits for more...",
        "Waits ... and then books",
        "Finds offices of Acme Inc. in Rome",
        "Costs approx. 5 euros",
        "Sends a letter to J. Smith",
        "Is the room free?",
        "部屋を予約します。",
        "Books a table for the guest\nat the restaurant",
    ],
)
def test_one_sentence_is_counted_once(text: str) -> None:
    assert not is_several(text)


@pytest.mark.parametrize(
    "text",
    [
        "Books a table. Sends a letter.",
        "Books a table. sends a letter",
        "Books it! Then pays.",
        "Is it free? Tells the guest.",
        "Books a table (for two). Sends a letter",
        "部屋を予約します。通知します。",
        "Books a table\n\nSends a letter",
        "Books:\n- a table\n- a chair",
        "Books a table.\nThen pays for it",
    ],
)
def test_several_sentences_are_counted(text: str) -> None:
    assert is_several(text)


@given(st.text(alphabet=".!? \n\"'Aa1…。"))
def test_any_text_is_counted(text: str) -> None:
    assert is_several(text) in (True, False)
    assert not is_several(text.replace(".", "").replace("!", "").replace("?", "").replace("\n", "").replace("。", ""))
