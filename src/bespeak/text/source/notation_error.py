"""The exception that stops a reader inside its own calls; its callers get a `SyntaxFault`."""

from __future__ import annotations


class NotationError(Exception):
    """A text is not in its notation: which stretch of it, why, and what to do about it."""

    def __init__(self, start: int, end: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.help = advice
