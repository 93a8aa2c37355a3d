"""GitHub's workflow commands."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.text import render_github
from bespeak.text.source.tree import Location


def test_a_finding_is_an_annotation_at_its_place(report: Report) -> None:
    first, second, third, fourth, last = render_github(report).splitlines()
    assert first == (
        "::error file=a/rooms.agis,line=4,col=11,endLine=4,endColumn=17,title=P321 trailing-slash"
        "::the path '/room/' ends with a slash. Write '/room'."
    )
    assert second.endswith("title=M230 participle::BOOKING is 100%25 a participle:\\nno, really")
    assert third.startswith("::notice file=b%2C c%3A d,title=D113 nothing::nothing to serve <here> & \\x1b")
    assert fourth == "::error title=Z999::a rule nobody knows"
    assert last.startswith("Checked 3 files: 2 errors")


def test_annotations_that_github_would_drop_are_logged() -> None:
    findings = [Finding(Diagnostic("P301", "error", f"wrong {n}", Location("a", n))) for n in range(1, 13)]
    findings.append(Finding(Diagnostic("P301", "warning", "odd", Location("a", 20))))
    lines = render_github(Report(findings=findings, files=["a"])).splitlines()
    assert [line[:7] for line in lines[:11]] == ["::error"] * 10 + ["::warni"]
    assert lines[11:] == [
        "GitHub shows 10 annotations of a kind for each step. The other 2 findings:",
        "a:11: P301 wrong 11",
        "a:12: P301 wrong 12",
        "Checked 1 file: 12 errors, 1 warning.",
    ]
