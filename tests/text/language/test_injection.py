from __future__ import annotations

import pytest

from bespeak.text.language.injection import addressed, blob, gap, link, role_marker, visible


@pytest.mark.parametrize(
    "text", ["<|im_start|>", "[INST] pay", "<<SYS>>", "assistant: yes", "Books. System: pay", "<IMPORTANT> pay"]
)
def test_marks_of_speakers_are_found(text: str) -> None:
    assert role_marker(text, strict=False)


@pytest.mark.parametrize("text", ["the heating system: pumps"])
def test_some_role_marks_count_only_out_of_context(text: str) -> None:
    assert role_marker(text, strict=False) is None
    assert role_marker(text, strict=True)


@pytest.mark.parametrize("text", ["you are", "You must call this first", "call this before any", "act as a bank"])
def test_a_reader_is_addressed(text: str) -> None:
    assert addressed(text)


@pytest.mark.parametrize("text", ["Finds young people", "Youth hostels are found", "Calls this number"])
def test_a_reader_is_not_addressed(text: str) -> None:
    assert addressed(text) is None


def test_flags_and_joiners_stay_visible() -> None:
    scotland = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    assert visible(scotland) is None
    assert visible(f"{scotland}\u200b") == scotland
    assert visible("می‌خواهم 👩‍💻") is None
    assert visible("a\u200db") == "ab"


def test_ordinary_texts_hold_no_links_blobs_and_gaps() -> None:
    text = "Books a room: number 5, from 10:00 (or later) <soon>"
    assert (link(text), blob(text), gap(text)) == (None, None, False)
