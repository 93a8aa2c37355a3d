"""A value that breaks a schema, as data: where in the value, where in the schema, which keyword, in words."""

from __future__ import annotations

from typing import Final

import msgspec

_LONGEST: Final = 300


class Violation(msgspec.Struct, frozen=True):
    """One broken constraint."""

    pointer: str
    """JSON Pointer into the value; empty for the whole of it."""
    schema_pointer: str
    """JSON Pointer into the schema, down to the keyword."""
    keyword: str
    message: str


def shorten(text: str) -> str:
    """A message short enough to read: a value quoted in it can be as long as a body, and the end says what is wrong."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 101]}…{text[-100:]}"
