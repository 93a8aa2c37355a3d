"""GitLab code quality report: findings next to the lines of a merge request."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.json_report import encoded

_SEVERITIES: Final[dict[Severity, str]] = {"error": "major", "warning": "minor", "info": "info"}


def render(report: Report) -> str:
    """Format the report, indented."""
    seen: Counter[str] = Counter()
    entries = [_entry(finding, seen) for finding in report.findings]
    return encoded(entries) + "\n"


def _entry(finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    said = finding.diagnostic
    name = finding.fingerprint or f"{said.rule} {finding.file} {said.pointer}"
    seen[name] += 1
    # GitLab drops a second entry of the same fingerprint.
    fingerprint = name if seen[name] == 1 else f"{name}-{seen[name]}"
    lines = {"begin": max(said.location.line, 1) if said.location else 1}
    if said.location is not None and said.location.end_line:
        lines["end"] = said.location.end_line
    return {
        "description": f"{said.message}. {said.help}" if said.help else said.message,
        "check_name": said.rule,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[said.severity],
        "location": {"path": finding.file, "lines": lines},
    }
