"""The exception that stops a parser; callers get a `SyntaxFault` instead."""

from __future__ import annotations

from bespeak.text.source.text_position import location_of
from bespeak.text.source.tree import SyntaxFault


class NotationError(Exception):
    """A syntax error: the span of the text, the reason, and the remedy."""

    def __init__(self, start: int, end: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.help = advice

    def fault(self, text: str, file: str) -> SyntaxFault:
        """Return the error with its place in a file."""
        return SyntaxFault(location_of(text, file, self.start, self.end), self.message, self.help)
