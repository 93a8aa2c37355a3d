"""The phrases of instructions: patterns that compile, with needles in lower case."""

from __future__ import annotations

from bespeak.text.language.injection import NEEDLES, PHRASES


def test_patterns_compile_and_match_no_empty_sentence() -> None:
    assert all(pattern.search("") is None for _, pattern in PHRASES)


def test_needles_are_in_lower_case() -> None:
    assert all(needle == needle.lower() for needle in NEEDLES)
