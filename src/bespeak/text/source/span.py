"""Where something stands in a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source: the file and, where known, the one-based line and column and where it ends."""

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    """The line of the end; 0 if the end is not known."""
    end_column: int = 0
    """The column after the last character, in `end_line`."""

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"
