"""Text that is safe to show."""

from __future__ import annotations

from bespeak.text.diagnostics.printable import printable


def test_what_is_not_printable_shows_as_its_escape() -> None:
    assert printable("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
