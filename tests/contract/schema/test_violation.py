from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.validation import shorten
from bespeak.text.source.pointer import pointer


def test_a_pointer_escapes_its_two_special_characters() -> None:
    assert pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"


@given(st.lists(st.text()))
def test_a_pointer_can_be_read_back(parts: list[str]) -> None:
    read = [part.replace("~1", "/").replace("~0", "~") for part in pointer(parts).split("/")[1:]]
    assert read == parts


@given(st.text(max_size=1000))
def test_a_shortened_text_has_at_most_three_hundred_characters(text: str) -> None:
    short = shorten(text)
    assert len(short) <= 300
    assert short == text or short.endswith(text[-100:])
