"""The format for people."""

from __future__ import annotations

from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters.text import render_full


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
