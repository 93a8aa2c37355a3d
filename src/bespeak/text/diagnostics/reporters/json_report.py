"""JSON document of a run, described by `report.schema.json` in this folder."""

from __future__ import annotations

import json
import pkgutil
from dataclasses import asdict
from typing import Any

from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.score import score_entry


def render(report: Report) -> str:
    """Format the document, indented."""
    return encoded(document(report)) + "\n"


def encoded(value: object, indent: int | None = 2) -> str:
    """Encode JSON in ASCII: a document may contain lone surrogates and control characters, and TOML has dates."""
    return json.dumps(value, indent=indent, default=str)


def schema() -> str:
    """Return the JSON Schema of the document."""
    data = pkgutil.get_data(__package__, "report.schema.json")
    assert data is not None
    return data.decode()


def document(report: Report) -> dict[str, Any]:
    """Convert the report to plain data."""
    safe, unsafe = report.fixable()
    scores = {"scores": [score_entry(score) for score in report.scores]} if report.scores else {}
    return {
        "format": 1,
        "tool": {"name": "bespeak", "version": report.version},
        "files": list(report.files),
        "summary": {
            **report.count(),
            "fixable": safe,
            "fixable_unsafe": unsafe,
            "ignored": report.ignored,
            "baselined": report.baselined,
            "left_out": report.left_out,
        },
        **scores,
        "findings": [entry(finding, report) for finding in report.findings],
    }


def entry(finding: Finding, report: Report) -> dict[str, Any]:
    """Convert a finding to plain data, without unknown members."""
    said, rule = finding.diagnostic, report.rules.get(finding.diagnostic.rule)
    place, fix = said.location, said.fix
    shown: dict[str, Any] = {
        "rule": said.rule,
        "name": rule.name if rule else "",
        "severity": said.severity,
        "message": said.message,
        "help": said.help,
        "file": place.file if place else "",
        "line": place.line if place else 0,
        "column": place.column if place else 0,
        "end_line": place.end_line if place else 0,
        "end_column": place.end_column if place else 0,
        "pointer": said.pointer,
        "on_key": said.on_key,
        "fingerprint": finding.fingerprint,
        "source": rule.source if rule else "",
    }
    if fix is not None:
        changes = [asdict(change) for change in fix.changes]
        edits = [asdict(edit) for edit in finding.edits]
        shown["fix"] = {"title": fix.title, "safe": fix.safe, "changes": changes, "edits": edits}
    always = ("rule", "severity", "message", "fix")
    return {key: value for key, value in shown.items() if value or key in always}
