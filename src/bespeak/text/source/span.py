"""A place in a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source: the file and, if known, one-based line and column, and the end."""

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    """Line of the end; 0 if unknown."""
    end_column: int = 0
    """Column after the last character, in `end_line`."""

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"
