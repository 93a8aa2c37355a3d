"""GitLab's code quality report."""

from __future__ import annotations

import json

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.json_report import render_gitlab
from bespeak.text.source.tree import Location


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


def test_no_two_entries_share_a_fingerprint() -> None:
    same = Finding(Diagnostic("P301", "error", "wrong", Location("a", 1)), "f")
    entries = json.loads(render_gitlab(Report(findings=[same, same, same])))
    assert [entry["fingerprint"] for entry in entries] == ["f", "f-2", "f-3"]


def test_a_clean_run_is_an_empty_list() -> None:
    assert json.loads(render_gitlab(Report(findings=[]))) == []
