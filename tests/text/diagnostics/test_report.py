"""A run in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Severity
from bespeak.text.diagnostics.report import (
    Finding,
    Gain,
    Report,
    Score,
    ScorePart,
    score_entry,
    score_lines,
    shown,
    summary,
)
from bespeak.text.source.tree import Location


def finding(severity: Severity, fix: Fix | None = None) -> Finding:
    return Finding(Diagnostic("P301", severity, "wrong", Location("a.toml"), fix=fix))


def test_summary_says_what_was_checked_and_what_is_hidden() -> None:
    assert summary(Report(findings=[], files=["a.toml"])) == "Checked 1 file: nothing found."
    report = Report(findings=[], files=["a"], ignored=2, baselined=1, left_out=5)
    assert summary(report) == "Checked 1 file: nothing found. 5 more are not shown. 2 ignored, 1 in the baseline."
    assert summary(Report(findings=[], files=["a.toml", "https://x.test/"])) == "Checked 2 documents: nothing found."
    found = Finding(Diagnostic("W101", "error", "wrong", Location("https://x.test")))
    assert summary(Report(findings=[found])) == "Checked 0 documents: 1 error."


def test_summary_counts_by_severity_and_names_fixable_findings() -> None:
    safe, unsafe = Fix("Mend it", ()), Fix("Guess", (), safe=False)
    report = Report(
        findings=[finding("error", safe), finding("error"), finding("warning", unsafe), finding("info")],
        files=["a.toml", "b.toml"],
    )
    assert summary(report) == (
        "Checked 2 files: 2 errors, 1 warning, 1 info. "
        "1 can be fixed with --fix. 1 more can be fixed with --fix --unsafe-fixes."
    )
    assert report.count() == {"error": 2, "warning": 1, "info": 1}
    assert report.fixable() == (1, 1)


def test_a_finding_without_a_place_has_no_file() -> None:
    assert Finding(Diagnostic("P301", "error", "wrong")).file == ""
    assert finding("error").file == "a.toml"


SCORE = Score(
    subject="https://flights.test",
    parts=(ScorePart(name="document", points=33.4, of=35), ScorePart(name="headers", points=65, of=65)),
    gains=(Gain(points=1.6, part="document", what="Mend the warnings", rules=("D175",)),),
    rating=(94, "Excellent"),
)


def test_points_are_whole_and_an_unknown_rating_is_left_out() -> None:
    assert SCORE.points == 98
    almost = Score(subject="", parts=(ScorePart(name="a", points=99.95, of=100),))
    assert almost.points == 99
    assert Score(subject="", parts=(ScorePart(name="a", points=0.1 + 0.2 + 99.7, of=100),)).points == 100
    unrated = replace(SCORE, rating=None)
    assert score_lines(unrated)[0] == "https://flights.test: score 98/100"
    assert score_entry(unrated)["platform"] is None


def test_text_shows_total_parts_and_improvements() -> None:
    assert score_lines(SCORE) == [
        'https://flights.test: score 98/100 (the platform\'s own rating: 94, "Excellent")',
        "  document   33.4 of 35",
        "  headers      65 of 65",
        "  +1.6  Mend the warnings (D175)",
    ]


def test_json_shows_the_same() -> None:
    assert score_entry(SCORE) == {
        "subject": "https://flights.test",
        "points": 98,
        "parts": [{"name": "document", "points": 33.4, "of": 35}, {"name": "headers", "points": 65, "of": 65}],
        "gains": [{"points": 1.6, "part": "document", "what": "Mend the warnings", "rules": ["D175"]}],
        "platform": {"points": 94, "grade": "Excellent"},
    }


@pytest.mark.parametrize(("points", "text"), [(5.0, "5"), (2.5, "2.5"), (3.2, "3.2"), (1 / 3, "0.3"), (0.0, "0")])
def test_points_have_at_most_one_decimal(points: float, text: str) -> None:
    assert shown(points) == text
