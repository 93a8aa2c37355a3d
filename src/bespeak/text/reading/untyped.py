"""Values of data that nobody has validated: one of another type counts as missing."""

from __future__ import annotations

from typing import Any


def as_mapping(value: object) -> dict[str, Any]:
    """Return a mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a string, or an empty one."""
    return value if isinstance(value, str) else ""


def as_optional_text(value: object) -> str | None:
    """Return a string, or None."""
    return value if isinstance(value, str) else None


def as_texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list; other items are skipped."""
    return tuple(item for item in as_list(value) if isinstance(item, str))
