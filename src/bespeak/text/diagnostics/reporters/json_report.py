"""Reports for programs: JSON, JSON lines, GitLab, SARIF, and JUnit."""

from __future__ import annotations

import json
import pkgutil
from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity
from bespeak.text.diagnostics.report import Finding, Replacement, Report, page_of, score_entry
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


_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT: Final = "%SRCROOT%"  # placeholder for the source root; the log contains no paths of this machine


def render_sarif(report: Report) -> str:
    """Format SARIF 2.1.0 for code scanning services and editors."""
    return encoded(_log(report)) + "\n"


def _log(report: Report) -> dict[str, Any]:
    """Convert the report to a log with one run and the rules that have findings."""
    named = sorted({finding.diagnostic.rule for finding in report.findings})
    index = {rule: number for number, rule in enumerate(named)}
    driver: dict[str, Any] = {"name": "bespeak", "rules": [_rule(rule, report.rules.get(rule)) for rule in named]}
    if report.version:
        driver["version"] = driver["semanticVersion"] = report.version
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": _artifact(file)} for file in report.files],
        "results": [_result(finding, index) for finding in report.findings],
    }
    if report.scores:
        run["properties"] = {"scores": [score_entry(score) for score in report.scores]}
    return {"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}


def _rule(rule: str, text: Rule | None) -> dict[str, Any]:
    if text is None:
        return {"id": rule}
    page = page_of(text)
    help_text = f"{page.why} Run `bespeak explain {rule}`."
    return {
        "id": rule,
        "name": text.name,
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": f"{page.summary} {page.why}"},
        "help": {"text": help_text, "markdown": help_text},
        "defaultConfiguration": {"level": _LEVELS[text.severity]},
        "properties": {"tags": list(filter(None, ("contract", text.source))), "problem.severity": text.severity},
    }


def _result(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    said = finding.diagnostic
    message = f"{said.message}. {said.help}" if said.help else said.message
    result: dict[str, Any] = {
        "ruleId": said.rule,
        "ruleIndex": index[said.rule],
        "level": _LEVELS[said.severity],
        "message": {"text": message},
    }
    place: dict[str, Any] = {}
    if said.location is not None and said.location.file:
        place["physicalLocation"] = {"artifactLocation": _artifact(said.location.file), **_region(said.location)}
    if said.pointer:
        place["logicalLocations"] = [{"fullyQualifiedName": said.pointer, "kind": "element"}]
    if place:
        result["locations"] = [place]
    if finding.fingerprint:
        result["partialFingerprints"] = {"bespeak/v1": finding.fingerprint}
    if said.fix is not None and finding.edits and said.location is not None:
        change = {
            "artifactLocation": _artifact(said.location.file),
            "replacements": [_replacement(edit) for edit in finding.edits],
        }
        result["fixes"] = [{"description": {"text": said.fix.title}, "artifactChanges": [change]}]
    return result


def _artifact(file: str) -> dict[str, Any]:
    if "://" in file:
        return {"uri": quote(file, safe="/:?#[]@!$&'()*+,;=%~", errors="replace")}
    uri = quote(file.replace("\\", "/"), errors="replace")
    return {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}


def _region(location: Location) -> dict[str, Any]:
    if not location.line:
        return {}
    region = {"startLine": location.line}
    if location.column:
        region["startColumn"] = location.column
    if location.end_line:
        region |= {"endLine": location.end_line, "endColumn": location.end_column}
    return {"region": region}


def _replacement(edit: Replacement) -> dict[str, Any]:
    start, end = (edit.line, edit.column), (edit.end_line, edit.end_column)
    region = dict(zip(("startLine", "startColumn", "endLine", "endColumn"), (*start, *end), strict=True))
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


_SPACES: Final = frozenset("\t\n\r")


def render_junit(report: Report) -> str:
    """Format the document. Warnings and advice are passing cases with the message as output."""
    by_file: defaultdict[str, list[Diagnostic]] = defaultdict(list, {file: [] for file in report.files})
    for finding in report.findings:
        by_file[finding.file].append(finding.diagnostic)
    total = sum(max(1, len(found)) for found in by_file.values())
    failures = report.count()["error"]
    suites = "".join(_suite(file, found) for file, found in by_file.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="bespeak lint" tests="{total}" failures="{failures}" errors="0">\n{suites}</testsuites>\n'
    )


def _suite(file: str, found: list[Diagnostic]) -> str:
    failures = sum(finding.severity == "error" for finding in found)
    name = _attribute(file or "run")
    cases = "".join(_case(name, finding) for finding in found) or f'    <testcase name="clean" classname={name}/>\n'
    return (
        f'  <testsuite name={name} tests="{max(1, len(found))}" failures="{failures}" errors="0">\n'
        f"{cases}  </testsuite>\n"
    )


def _case(file: str, finding: Diagnostic) -> str:
    place = finding.location
    at = f":{place.line}:{place.column}" if place is not None and place.line else ""
    line = f' line="{place.line}"' if place is not None and place.line else ""
    said = f"{finding.message}. {finding.help}" if finding.help else finding.message
    if finding.severity == "error":
        inner = f'      <failure type="error" message={_attribute(finding.message)}>{_text(said)}</failure>\n'
    else:
        inner = f"      <system-out>{_text(f'{finding.severity}: {said}')}</system-out>\n"
    return f"    <testcase name={_attribute(finding.rule + at)} classname={file}{line}>\n{inner}    </testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """Remove characters that XML 1.0 cannot contain even escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _SPACES else ascii(char)[1:-1] for char in text)
