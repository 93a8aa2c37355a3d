"""How a reader stops inside its own calls; callers of a reader get a `Fault`."""

from __future__ import annotations


class Refused(Exception):
    """Why a text is refused, which stretch of it, and what to do about it."""

    def __init__(self, start: int, end: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.help = advice
