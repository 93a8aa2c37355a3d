"""GitHub workflow commands: findings as annotations of a pull request."""

from __future__ import annotations

from collections import Counter
from typing import Final

from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.report import Finding, Report, summary
from bespeak.text.diagnostics.reporters.concise import one_line

_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}
_MOST: Final = 10
"""Maximum number of annotations of one kind that GitHub shows per step; it silently drops the others."""


def render(report: Report) -> str:
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
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    text = f"{said.message}. {said.help}" if said.help else said.message
    return f"::{_COMMANDS[said.severity]} {given}::{_data(text)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
