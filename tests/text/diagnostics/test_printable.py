"""Text that is safe to show."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import printable


def test_unprintable_characters_are_escaped() -> None:
    assert printable("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
