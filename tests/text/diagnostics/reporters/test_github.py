"""GitHub's workflow commands."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.text import render_concise, render_full, render_github
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


def test_each_finding_has_its_line_its_advice_and_a_link(report: Report) -> None:
    assert render_full(report).startswith(
        "a/rooms.agis:4:11: error[P321] the path '/room/' ends with a slash\n"
        "  4 |     path: /room/\n"
        "    |           ^^^^^^\n"
        "  help: Write '/room'.\n"
        "  fix: Write /room\n"
        "  see: bespeak explain P321\n\n"
    )


def test_summary_is_last_unless_disabled(report: Report) -> None:
    last = "Checked 3 files: 2 errors, 1 warning, 1 info. 2 ignored, 1 in the baseline. 1 can be fixed with --fix. "
    assert last in render_full(report).splitlines()[-1]
    assert "Checked" not in render_full(report, quiet=True)
    assert render_full(Report(findings=[], files=["a"])) == "Checked 1 file: nothing found.\n"
    assert render_full(Report(findings=[]), quiet=True) == ""


def test_concise_report_has_a_line_for_each_finding_and_the_summary_last(report: Report) -> None:
    assert render_concise(report, quiet=True).splitlines() == [
        "a/rooms.agis:4:11: P321 the path '/room/' ends with a slash. Write '/room'.",
        "a/rooms.agis:3:13: M230 [warning] BOOKING is 100% a participle:\\nno, really",
        "b, c: d: D113 [info] nothing to serve <here> & \\x1b[31m\\ud800 there",
        "Z999 a rule nobody knows",
    ]
    assert render_concise(report).splitlines()[-1].startswith("Checked 3 files")
