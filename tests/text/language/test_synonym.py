"""Words for the same thing."""

from __future__ import annotations

import pytest

from bespeak.text.language.lexicon import THINGS


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("invoice", "bill", True), ("repo", "repository", True), ("email", "message", False), ("room", "invoice", False)],
)
def test_words_share_a_thing(one: str, other: str, *, same: bool) -> None:
    assert bool(set(THINGS[one]) & set(THINGS[other])) == same
