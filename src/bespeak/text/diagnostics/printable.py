"""Escaping of untrusted text for terminals."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape unprintable characters, so that the text cannot move the cursor or colour the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
