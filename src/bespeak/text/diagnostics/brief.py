"""Shortened, quoted values for messages."""

from __future__ import annotations

import reprlib
from typing import Final

_LONGEST: Final = 160

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxlist = _short.maxdict = 4


def brief(value: object) -> str:
    """Format a value for a message."""
    try:
        text = _short.repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "..."
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unquoted(text: str) -> str:
    """Format a text for a message that needs no quotation marks around it: a name in backquotes, a value to write."""
    return brief(text)[1:-1]
