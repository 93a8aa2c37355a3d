"""Text that is safe to show: part of it may be a stranger's words."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text that cannot move the cursor or colour the terminal: what is not printable shows as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
