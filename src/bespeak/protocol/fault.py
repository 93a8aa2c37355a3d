"""Why a value is not valid, as parsers return it in place of what they parse."""

from __future__ import annotations

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a value, and in which part of it."""

    message: str
    at: str = ""
    """The part that is wrong: a path segment, an entry of a list, a JSON Pointer into a schema."""
