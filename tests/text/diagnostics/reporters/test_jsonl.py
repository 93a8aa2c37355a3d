"""One JSON object in one line for each finding."""

from __future__ import annotations

import json

from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters import json_report
from bespeak.text.diagnostics.reporters.json_report import render_jsonl


def test_each_line_is_a_finding_as_the_json_document_has_it(report: Report) -> None:
    lines = [json.loads(line) for line in render_jsonl(report).splitlines()]
    assert lines == json.loads(json_report.render_json(report))["findings"]


def test_a_clean_run_prints_nothing() -> None:
    assert render_jsonl(Report(findings=[], files=["a"])) == ""
