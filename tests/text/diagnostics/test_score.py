"""Points, for people and for programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bespeak.text.diagnostics.report import Gain, Part, Score, score_entry, score_lines, shown

SCORE = Score(
    subject="https://flights.test",
    parts=(Part(name="document", points=33.4, of=35), Part(name="headers", points=65, of=65)),
    gains=(Gain(points=1.6, part="document", what="Mend the warnings", rules=("D175",)),),
    rating=(94, "Excellent"),
)


def test_points_are_whole_and_a_hundred_only_if_nothing_is_missing() -> None:
    assert SCORE.points == 98
    almost = Score(subject="", parts=(Part(name="a", points=99.95, of=100),))
    assert almost.points == 99
    assert Score(subject="", parts=(Part(name="a", points=0.1 + 0.2 + 99.7, of=100),)).points == 100


def test_text_shows_total_parts_and_improvements() -> None:
    assert score_lines(SCORE) == [
        'https://flights.test: score 98/100 (the platform\'s own rating: 94, "Excellent")',
        "  document   33.4 of 35",
        "  headers      65 of 65",
        "  +1.6  Mend the warnings (D175)",
    ]


def test_unknown_rating_is_left_out() -> None:
    unrated = replace(SCORE, rating=None)
    assert score_lines(unrated)[0] == "https://flights.test: score 98/100"
    assert score_entry(unrated)["platform"] is None


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
