"""The exception that stops a parser; callers get a `SyntaxFault` instead."""

from __future__ import annotations


class NotationError(Exception):
    """A syntax error: the span of the text, the reason, and the remedy."""

    def __init__(self, start: int, end: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.help = advice
