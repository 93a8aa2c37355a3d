"""Size check of a JSON value, without visiting more of it than needed."""

from __future__ import annotations


def is_within(value: object, *, parts: int, characters: int) -> bool:
    """Return True if a value has at most this many parts (itself, elements, members) and characters of text."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        parts -= 1
        if isinstance(part, str):
            characters -= len(part)
        elif isinstance(part, dict):
            characters -= sum(map(len, part))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        if parts < len(waiting) or characters < 0:
            return False
    return True
