"""One JSON document for a run, as its schema says."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.json_report import render_json, schema
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


def test_unknown_fields_are_omitted(report: Report) -> None:
    last = json.loads(render_json(report))["findings"][-1]
    assert last == {"rule": "Z999", "severity": "error", "message": "a rule nobody knows"}


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
