"""One line for each finding."""

from __future__ import annotations

from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters.text import render_concise


def test_a_finding_is_one_line_with_its_rule(report: Report) -> None:
    assert render_concise(report, quiet=True).splitlines() == [
        "a/rooms.agis:4:11: P321 the path '/room/' ends with a slash. Write '/room'.",
        "a/rooms.agis:3:13: M230 [warning] BOOKING is 100% a participle:\\nno, really",
        "b, c: d: D113 [info] nothing to serve <here> & \\x1b[31m\\ud800 there",
        "Z999 a rule nobody knows",
    ]


def test_the_summary_is_the_last_line(report: Report) -> None:
    assert render_concise(report).splitlines()[-1].startswith("Checked 3 files")
