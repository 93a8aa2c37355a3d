"""Offsets into a text as lines and columns."""

from __future__ import annotations

from bisect import bisect_right

from bespeak.text.source.span import Location


class Lines:
    """The lines of one text, indexed once. Only a line feed ends a line, as in an editor."""

    __slots__ = ("_file", "_starts")

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._starts = starts

    def location(self, start: int, end: int = -1) -> Location:
        """Return the location of an offset, or of a span if its end is given."""
        line, column = self._place(start)
        if end < start:
            return Location(self._file, line, column)
        return Location(self._file, line, column, *self._place(end))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def location_of(text: str, file: str, start: int, end: int = -1) -> Location:
    """Return the location of one offset or span without indexing the lines."""
    line, column = _place(text, start)
    if end < start:
        return Location(file, line, column)
    return Location(file, line, column, *_place(text, end))


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
