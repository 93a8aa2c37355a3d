"""Reports as JSON: the document of a run (`report.schema.json`), a stream of findings, and GitLab code quality."""

from __future__ import annotations

import json
import pkgutil
from collections import Counter
from dataclasses import asdict
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.report import Finding, Report, score_entry
from bespeak.text.source.tree import Location


def render_json(report: Report) -> str:
    return encoded(document(report)) + "\n"


def encoded(value: object, indent: int | None = 2) -> str:
    """Encode JSON in ASCII: a document may contain lone surrogates and control characters, and TOML has dates."""
    return json.dumps(value, indent=indent, default=str)


def schema() -> str:
    data = pkgutil.get_data(__package__, "report.schema.json")
    assert data is not None
    return data.decode()


def document(report: Report) -> dict[str, Any]:
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
    said, rule = finding.diagnostic, report.rules.get(finding.diagnostic.rule)
    fix = said.fix
    shown: dict[str, Any] = {
        "rule": said.rule,
        "name": rule.name if rule else "",
        "severity": said.severity,
        "message": said.message,
        "help": said.help,
        **asdict(said.location or Location("")),
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


def render_jsonl(report: Report) -> str:
    return "".join(f"{encoded(entry(finding, report), None)}\n" for finding in report.findings)


_SEVERITIES: Final[dict[Severity, str]] = {"error": "major", "warning": "minor", "info": "info"}


def render_gitlab(report: Report) -> str:
    seen: Counter[str] = Counter()
    return encoded([_entry(finding, seen) for finding in report.findings]) + "\n"


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
