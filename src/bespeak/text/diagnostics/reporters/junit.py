"""JUnit XML: a suite per file, a case per finding, and a passing case for a file without findings."""

from __future__ import annotations

from collections import defaultdict
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Report

_SPACES: Final = frozenset("\t\n\r")


def render(report: Report) -> str:
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
