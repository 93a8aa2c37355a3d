"""The table of formats."""

from __future__ import annotations

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report, Score, ScorePart
from bespeak.text.diagnostics.reporters import FORMATS, reporter
from bespeak.text.source.tree import Location

URL = "https://flights.test:8443/.well-known/ai"
LIVE = Report(
    findings=[Finding(Diagnostic("W919", "warning", "the Cache-Control is missing", Location(URL)), "f1")],
    files=[URL],
    scores=[Score(subject="https://flights.test:8443", parts=[ScorePart(name="headers", points=96, of=100)])],
)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_complete_encodable_lines(name: str, report: Report) -> None:
    text = reporter(name)(report)
    assert text.endswith("\n")
    text.encode()
    assert "\x1b" not in text


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_every_rule(name: str, report: Report) -> None:
    text = reporter(name)(report)
    assert all(finding.diagnostic.rule in text for finding in report.findings)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_accepts_an_address_instead_of_a_file(name: str) -> None:
    text = reporter(name)(LIVE)
    assert URL in text.replace("%3A", ":")


@pytest.mark.parametrize("name", ["full", "concise", "json", "sarif"])
def test_formats_that_support_it_include_the_score(name: str) -> None:
    text = reporter(name)(LIVE)
    assert "score" in text
    assert "96" in text
