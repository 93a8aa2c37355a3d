"""A violation of a schema as data: place in the value, place in the schema, keyword, and message."""

from __future__ import annotations

from typing import Final

import msgspec

_LONGEST: Final = 300


class Violation(msgspec.Struct, frozen=True):
    """One violated constraint."""

    pointer: str
    """JSON Pointer into the value; empty for the whole value."""
    schema_pointer: str
    """JSON Pointer into the schema, down to the keyword."""
    keyword: str
    message: str


def shorten(text: str) -> str:
    """Shorten a message in the middle: a quoted value can be as long as a body, and the end states the fault."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 101]}…{text[-100:]}"
