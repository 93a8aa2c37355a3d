"""One JSON object per line and finding, as in `json`, for programs that read a stream."""

from __future__ import annotations

from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters.json_report import encoded, entry


def render(report: Report) -> str:
    """Format the lines."""
    return "".join(f"{encoded(entry(finding, report), None)}\n" for finding in report.findings)
