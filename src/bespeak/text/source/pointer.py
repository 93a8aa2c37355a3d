"""JSON Pointers (RFC 6901): names of places inside a document."""

from __future__ import annotations

from collections.abc import Iterable


def child(at: str, part: str | int) -> str:
    """Return the pointer one step below another."""
    if isinstance(part, int):
        return f"{at}/{part}"
    if "~" in part or "/" in part:
        part = part.replace("~", "~0").replace("/", "~1")
    return f"{at}/{part}"


def unescaped(part: str) -> str:
    """Unescape a part of a pointer."""
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def pointer(parts: Iterable[str | int]) -> str:
    """Join parts into a pointer; the empty text is the whole document."""
    at = ""
    for part in parts:
        at = child(at, part)
    return at


def parent(at: str) -> str:
    """Return the pointer one step above; the whole document is its own parent."""
    return at.rpartition("/")[0]
