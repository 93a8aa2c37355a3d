"""Conversion of positions to LSP: lines from zero, characters in the negotiated units."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from lsprotocol.types import Position, PositionEncodingKind, Range

from bespeak.text.diagnostics.report import Replacement
from bespeak.text.source.tree import Location, Span, TextEdit, line_starts

_LINE_END: Final = re.compile(r"\r\n?|\n")
_WORD: Final = re.compile(r"[\w./{}-]++|\S?")
_BOM: Final = "\ufeff"


class Positions:
    """One text of an editor. Offsets count characters of the text as the editor sent it."""

    def __init__(self, text: str, encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16) -> None:
        self.text = text
        self._encoding = encoding
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        # In findings only a line feed ends a line; in the protocol a carriage return does too.
        self._feeds = line_starts(text)

    def offset(self, position: Position) -> int:
        """Return the offset of a position; the end of the line if it is beyond it."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        if self._encoding == PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for number, character in enumerate(line):
            if units >= position.character:
                return start + number
            units += self._units(character)
        return start + len(line)

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self.text[self._starts[line] : offset]))

    def span(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def place(self, location: Location | None) -> Range:
        """Return the range of a finding: the word there if it has no end, the first line if it has no location."""
        if location is None or not location.line:
            first = _LINE_END.search(self.text)
            return self.span(0, first.start() if first else len(self.text))
        start = self.from_finding(location.line, location.column)
        if location.end_line:
            return self.span(start, max(start, self.from_finding(location.end_line, location.end_column)))
        word = _WORD.match(self.text, start)
        return self.span(start, word.end() if word else start)

    def edit(self, made: Replacement) -> TextEdit:
        """Convert a replacement by lines and columns, with the line ends of the text."""
        start, end = self.from_finding(made.line, made.column), self.from_finding(made.end_line, made.end_column)
        return TextEdit(Span(start, end), made.text.replace("\n", "\r\n") if "\r\n" in self.text else made.text)

    def from_finding(self, line: int, column: int) -> int:
        """Return the offset of a line and a column of a finding, both counted from one."""
        if line > len(self._feeds):
            return len(self.text)
        start = self._feeds[line - 1]
        if line == 1 and self.text.startswith(_BOM):
            start += len(_BOM)
        return min(start + max(column, 1) - 1, len(self.text))

    def _units(self, text: str) -> int:
        if self._encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
