"""One JSON object in one line for each finding, as `json` has them: for programs that read while we write."""

from __future__ import annotations

from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters.json_report import encoded, entry


def render(report: Report) -> str:
    """The lines."""
    return "".join(f"{encoded(entry(finding, report), None)}\n" for finding in report.findings)
