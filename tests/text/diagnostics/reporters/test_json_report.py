"""One JSON document for a run, as its schema says."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters import json_report
from bespeak.text.diagnostics.reporters.json_report import render_gitlab, render_json, render_jsonl, schema
from bespeak.text.source.tree import Location

VALIDATOR = jsonschema_rs.validator_for(json.loads(schema()), validate_formats=True)


def test_document_matches_its_schema(report: Report) -> None:
    document = json.loads(render_json(report))
    VALIDATOR.validate(document)
    assert document["files"] == ["a/rooms.agis", "b, c: d", "clean.toml"]
    assert document["summary"] == {
        "error": 2,
        "warning": 1,
        "info": 1,
        "fixable": 1,
        "fixable_unsafe": 1,
        "ignored": 2,
        "baselined": 1,
        "left_out": 0,
    }


def test_fix_is_included_as_data(report: Report) -> None:
    first = json.loads(render_json(report))["findings"][0]
    assert first["fix"] == {
        "title": "Write /room",
        "safe": True,
        "changes": [{"op": "replace", "at": "/endpoints/0/path", "value": "/room", "key": ""}],
        "edits": [{"line": 4, "column": 11, "end_line": 4, "end_column": 17, "text": "/room"}],
    }


def test_json_report_omits_unknown_fields_and_each_line_of_jsonl_is_one_of_its_findings(report: Report) -> None:
    last = json.loads(render_json(report))["findings"][-1]
    assert last == {"rule": "Z999", "severity": "error", "message": "a rule nobody knows"}
    lines = [json.loads(line) for line in render_jsonl(report).splitlines()]
    assert lines == json.loads(json_report.render_json(report))["findings"]


@pytest.mark.parametrize(
    "change", [{"findings": [{"rule": "P321"}]}, {"format": 2}, {"files": None}, {"more": 1}], ids=str
)
def test_the_schema_refuses_other_documents(report: Report, change: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(json.loads(render_json(report)) | change)


@given(st.text(), st.text(), st.integers(0, 9), st.integers(0, 9))
def test_any_text_gives_a_document_that_can_be_read(message: str, file: str, line: int, column: int) -> None:
    finding = Finding(Diagnostic("P301", "error", message, Location(file, line, column)))
    [entry] = json.loads(render_json(Report(findings=[finding])).encode())["findings"]
    assert entry["message"] == message


def test_entry_has_the_fields_required_by_gitlab(report: Report) -> None:
    first, second, third, fourth = json.loads(render_gitlab(report))
    assert first == {
        "description": "the path '/room/' ends with a slash. Write '/room'.",
        "check_name": "P321",
        "fingerprint": "f1",
        "severity": "major",
        "location": {"path": "a/rooms.agis", "lines": {"begin": 4, "end": 4}},
    }
    assert [second["severity"], third["severity"]] == ["minor", "info"]
    assert third["location"]["lines"] == {"begin": 1}
    assert fourth["fingerprint"]


def test_clean_run_is_empty_and_no_two_entries_share_a_fingerprint() -> None:
    same = Finding(Diagnostic("P301", "error", "wrong", Location("a", 1)), "f")
    entries = json.loads(render_gitlab(Report(findings=[same, same, same])))
    assert [entry["fingerprint"] for entry in entries] == ["f", "f-2", "f-3"]
    assert json.loads(render_gitlab(Report(findings=[]))) == []
    assert render_jsonl(Report(findings=[], files=["a"])) == ""
