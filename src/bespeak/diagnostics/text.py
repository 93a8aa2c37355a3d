"""Findings as plain text for people, each with the line of the file it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.source.span import Location

Source = Callable[[str], str | None]
"""Gives the text of a file, or None when it cannot be read."""

_WIDTH: Final = 100
_LARGEST: Final = 1 << 20


def full(findings: Iterable[Diagnostic], source: Source | None = None) -> str:
    """Each finding with the line it is about, a caret below the place, and what to do. Texts come from `source`."""
    read = source or from_disk
    texts: dict[str, str | None] = {}
    blocks: list[str] = []
    for finding in findings:
        lines = [_headline(finding)]
        location = finding.location
        if location is not None and location.line:
            if location.file not in texts:
                texts[location.file] = read(location.file)
            lines += _frame(texts[location.file], location)
        if finding.help:
            lines.append(f"  help: {printable(finding.help)}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def printable(text: str) -> str:
    """Text that cannot move the cursor or colour the terminal: what is not printable shows as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def from_disk(file: str) -> str | None:
    """The text of a file as far as it can be shown."""
    try:
        path = Path(file)
        if not path.is_file():
            return None
        with path.open("rb") as opened:
            return opened.read(_LARGEST).decode(errors="replace")
    except (OSError, ValueError):
        return None


def _headline(finding: Diagnostic) -> str:
    place = f"{finding.location}: " if finding.location else ""
    return printable(f"{place}{finding.severity}[{finding.rule}] {finding.message}")


def _frame(text: str | None, location: Location) -> list[str]:
    lines = text.split("\n") if text is not None else []
    if location.line > len(lines):
        return []
    # One character stays one character, so that the caret keeps its column.
    line = "".join(char if char.isprintable() else " " for char in lines[location.line - 1].rstrip())
    column = max(location.column, 1)
    start = max(0, column - _WIDTH + 20) if len(line) > _WIDTH else 0
    number = str(location.line)
    margin = " " * len(number)
    frame = [f"  {number} | {line[start : start + _WIDTH]}".rstrip()]
    if location.column:
        frame.append(f"  {margin} | {' ' * (column - 1 - start)}^")
    return frame
