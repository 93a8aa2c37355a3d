"""Format for people: each finding with its source line, advice and a link."""

from __future__ import annotations

from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.report import Report, summary
from bespeak.text.diagnostics.score import score_lines
from bespeak.text.diagnostics.text import Style, full


def render(report: Report, style: Style | None = None, *, quiet: bool = False) -> str:
    """Format the findings and the summary; `quiet` omits the summary."""
    shown = full(report.diagnostics, report.source, style=style, see="bespeak explain {}".format)
    text = f"{shown}\n" if shown else ""
    if quiet:
        return text
    scores = "".join(f"{printable(line)}\n" for score in report.scores for line in score_lines(score))
    closing = f"{scores}\n{summary(report)}\n" if scores else f"{summary(report)}\n"
    return f"{text}\n{closing}" if text else closing
