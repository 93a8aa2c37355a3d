"""Findings as plain text, each with its source line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.report import Source
from bespeak.text.source.span import Location

Style = Callable[[str, str], str]
"""Function that styles a text for a role: a severity, `place`, `frame`, `caret` or `label`."""

_WIDTH: Final = 100
_LARGEST: Final = 1 << 24


def full(
    findings: Iterable[Diagnostic],
    source: Source | None = None,
    *,
    style: Style | None = None,
    see: Callable[[str], str] | None = None,
) -> str:
    """Format each finding with its source line, carets below the place, and advice. `source` provides the texts.

    `see` returns the reference to more information about a rule id.
    """
    read, styled = source or from_disk, style or (lambda text, _: text)
    texts: dict[str, list[str]] = {}
    blocks: list[str] = []
    for finding in findings:
        lines = [_headline(finding, styled)]
        location = finding.location
        if location is not None and location.line:
            if location.file not in texts:
                texts[location.file] = (read(location.file) or "").split("\n")
            lines += _frame(texts[location.file], location, styled, finding.severity)
        lines += _advice(finding, styled)
        if see is not None:
            lines.append(f"  {styled('see:', 'label')} {see(finding.rule)}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def from_disk(file: str) -> str | None:
    """Read a file for display; return None if that fails."""
    try:
        path = Path(file)
        if not path.is_file():
            return None
        with path.open("rb") as opened:
            return opened.read(_LARGEST).removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    except (OSError, ValueError):
        return None


def _headline(finding: Diagnostic, styled: Style) -> str:
    place = f"{styled(printable(str(finding.location)), 'place')}: " if finding.location else ""
    kind = styled(printable(f"{finding.severity}[{finding.rule}]"), finding.severity)
    return f"{place}{kind} {printable(finding.message)}"


def _advice(finding: Diagnostic, styled: Style) -> list[str]:
    """Format the advice and the fix; in one line if they say the same."""
    lines = [f"  {styled('help:', 'label')} {printable(finding.help)}"] if finding.help else []
    fix = finding.fix
    if fix is not None and fix.title in finding.help:
        lines[0] += " [fix]" if fix.safe else " [unsafe fix]"
    elif fix is not None:
        lines.append(f"  {styled('fix:' if fix.safe else 'unsafe fix:', 'label')} {printable(fix.title)}")
    return lines


def _frame(lines: list[str], location: Location, styled: Style, severity: str) -> list[str]:
    if location.line > len(lines) or (len(lines) == 1 and not lines[0]):
        return []
    line = lines[location.line - 1].rstrip()
    column = max(location.column, 1)
    start = max(0, column - _WIDTH + 20) if len(line) > _WIDTH else 0
    # One character stays one character, so that the carets keep their columns.
    shown = "".join(char if char.isprintable() else " " for char in line[start : start + _WIDTH])
    number = str(location.line)
    bar = styled("|", "frame")
    frame = [f"  {styled(number, 'frame')} {bar} {shown}".rstrip()]
    if location.column:
        carets = "^" * _length(location, column, min(len(line), start + _WIDTH))
        frame.append(f"  {' ' * len(number)} {bar} {' ' * (column - 1 - start)}{styled(carets, severity)}")
    return frame


def _length(location: Location, column: int, shown: int) -> int:
    """Return the number of carets: to the end of the range, or of the line if the range continues."""
    if not location.end_line:
        return 1
    end = location.end_column - 1 if location.end_line == location.line else shown
    return max(1, min(end, shown) - column + 1)
