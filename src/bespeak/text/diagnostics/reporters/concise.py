"""One line per finding, `path:line:column: P302 message`, for agents, grep and quick reading."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.report import Report, summary
from bespeak.text.diagnostics.score import score_lines


def render(report: Report, *, quiet: bool = False) -> str:
    """Format the findings and the summary; `quiet` omits the summary."""
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
