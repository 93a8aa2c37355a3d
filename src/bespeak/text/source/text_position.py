"""Offsets into a text as lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right

from bespeak.text.source.span import Location


class Lines:
    """The lines of one text, indexed once. Only a line feed ends a line, as in an editor."""

    __slots__ = ("_file", "_starts")

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._starts = line_starts(text)

    def location(self, start: int, end: int = -1) -> Location:
        """Return the location of an offset, or of a span if its end is given."""
        line, column = self._place(start)
        if end < start:
            return Location(self._file, line, column)
        return Location(self._file, line, column, *self._place(end))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def line_starts(text: str) -> list[int]:
    """Return the offset at which each line starts."""
    return [0, *(feed.end() for feed in re.finditer("\n", text))]


def location_of(text: str, file: str, start: int, end: int = -1) -> Location:
    """Return the location of one offset or span; `Lines` is for many of one text."""
    return Lines(text, file).location(start, end)


def match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of a pattern at an offset, or the offset if it does not match."""
    found = pattern.match(text, at)
    return found.end() if found else at
