"""Reports as text: full for people, one line per finding for grep, and annotations for GitHub workflows."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity, printable
from bespeak.text.diagnostics.report import Finding, Report, Source, score_lines, summary
from bespeak.text.source.tree import Location

Style = Callable[[str, str], str]  # styles a text for a role: a severity, `place`, `frame`, `caret`, `label`
_WIDTH: Final = 100
_LARGEST: Final = 1 << 24


def full(
    findings: Iterable[Diagnostic],
    source: Source | None = None,
    *,
    style: Style | None = None,
    see: Callable[[str], str] | None = None,
    width: int | None = None,
) -> str:
    """Format each finding with its source line, carets and advice. `see` names where a rule id is explained.

    With a width, sentences are wrapped; without one each is one line, which programs can read.
    """
    read, styled = source or from_disk, style or (lambda text, _: text)
    texts: dict[str, list[str]] = {}
    blocks: list[str] = []
    for finding in findings:
        lines = _headline(finding, styled, width)
        location = finding.location
        if location is not None and location.line:
            if location.file not in texts:
                texts[location.file] = (read(location.file) or "").split("\n")
            lines += _frame(texts[location.file], location, styled, finding.severity)
        lines += _advice(finding, styled, width)
        if see is not None:
            lines.append(f"  {styled('see:', 'label')} {see(finding.rule)}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def frame_of(finding: Diagnostic, source: Source) -> str:
    """Return the source line of a finding with carets; an empty text if it is not about a line."""
    location = finding.location
    if location is None or not location.line:
        return ""
    lines = (source(location.file) or "").split("\n")
    return "\n".join(_frame(lines, location, lambda text, _: text, finding.severity))


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


def _headline(finding: Diagnostic, styled: Style, width: int | None) -> list[str]:
    location = printable(str(finding.location)) if finding.location else ""
    kind = printable(f"{finding.severity}[{finding.rule}]")
    place = f"{styled(location, 'place')}: " if location else ""
    used = len(kind) + (len(location) + 2 if location else 0)
    return _sentence(f"{place}{styled(kind, finding.severity)}", used, finding.message, width, "  ")


def _sentence(begin: str, used: int, text: str, width: int | None, indent: str) -> list[str]:
    """Put a text behind its beginning, of which `used` columns are visible, and wrap it if there is a width."""
    if width is None:
        return [f"{begin} {printable(text)}"]
    blank = " " * (used + 1)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    if used + 1 < width:
        wrapper.initial_indent = blank
        first, *rest = wrapper.wrap(printable(text)) or [blank]
        if first.startswith(blank) and len(first) <= width:
            return [f"{begin} {first[len(blank) :]}", *rest]
    wrapper.initial_indent = indent
    return [begin, *wrapper.wrap(printable(text))]


def _advice(finding: Diagnostic, styled: Style, width: int | None) -> list[str]:
    """Format the advice and the fix; in one line if they say the same."""
    fix, advice = finding.fix, finding.help
    lines: list[str] = []
    is_same = fix is not None and fix.title in advice
    if fix is not None and is_same:
        advice += " [fix]" if fix.safe else " [unsafe fix]"
    if advice:
        lines += _sentence(f"  {styled('help:', 'label')}", 7, advice, width, " " * 8)
    if fix is not None and not is_same:
        label = "fix:" if fix.safe else "unsafe fix:"
        lines += _sentence(f"  {styled(label, 'label')}", len(label) + 2, fix.title, width, " " * 8)
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


def render_full(report: Report, style: Style | None = None, *, quiet: bool = False, width: int | None = None) -> str:
    shown = full(report.diagnostics, report.source, style=style, see="bespeak explain {}".format, width=width)
    text = f"{shown}\n" if shown else ""
    if quiet:
        return text
    scores = "".join(f"{printable(line)}\n" for score in report.scores for line in score_lines(score))
    closing = f"{scores}\n{summary(report)}\n" if scores else f"{summary(report)}\n"
    return f"{text}\n{closing}" if text else closing


def render_concise(report: Report, *, quiet: bool = False) -> str:
    lines = [one_line(finding) for finding in report.diagnostics]
    if not quiet:
        lines += [printable(score_lines(score)[0]) for score in report.scores]
        lines.append(summary(report))
    return "".join(f"{text}\n" for text in lines)


def one_line(finding: Diagnostic) -> str:
    """Format a finding in one line. The severity is shown unless it is an error."""
    place = f"{finding.location}: " if finding.location else ""
    weight = "" if finding.severity == "error" else f"[{finding.severity}] "
    advice = f". {finding.help}" if finding.help else ""
    return printable(f"{place}{finding.rule} {weight}{finding.message}{advice}")


_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}
_MOST: Final = 10  # maximum number of annotations of one kind that GitHub shows per step; it silently drops the others


def render_github(report: Report) -> str:
    """Format annotations up to GitHub's limit; the others are plain lines of the log, with a note."""
    shown: Counter[Severity] = Counter()
    lines: list[str] = []
    rest: list[str] = []
    for finding in report.findings:
        severity = finding.diagnostic.severity
        shown[severity] += 1
        if shown[severity] <= _MOST:
            lines.append(_command(finding, report))
        else:
            rest.append(one_line(finding.diagnostic))
    if rest:
        lines.append(f"GitHub shows {_MOST} annotations of a kind for each step. The other {len(rest)} findings:")
    return "".join(f"{line}\n" for line in (*lines, *rest, summary(report)))


def _command(finding: Finding, report: Report) -> str:
    said = finding.diagnostic
    rule = report.rules.get(said.rule)
    properties = {"title": f"{said.rule} {rule.name}" if rule else said.rule}
    if said.location is not None:
        place = said.location
        numbers = {"line": place.line, "col": place.column, "endLine": place.end_line}
        if place.end_line == place.line:  # GitHub accepts columns only for a range within one line
            numbers["endColumn"] = place.end_column
        shown = {key: str(number) for key, number in numbers.items() if number}
        properties = {"file": place.file, **shown, **properties}
    escaped = {key: _data(value).replace(":", "%3A").replace(",", "%2C") for key, value in properties.items()}
    given = ",".join(f"{key}={value}" for key, value in escaped.items())
    text = f"{said.message}. {said.help}" if said.help else said.message
    return f"::{_COMMANDS[said.severity]} {given}::{_data(text)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")
