"""Confidence by calibration: monotone, and between 0 and 1."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.checks.alignment.aligner import calibrate

SCORES = st.floats(-1, 2, allow_nan=False)


@given(SCORES, SCORES, st.booleans())
def test_higher_score_never_has_a_lower_confidence(one: float, other: float, of_property: bool) -> None:
    low, high = sorted((one, other))
    assert 0 <= calibrate(low, of_property=of_property) <= calibrate(high, of_property=of_property) <= 1


def test_confidence_says_how_often_such_a_mapping_is_right() -> None:
    assert calibrate(0.98) > 0.9
    assert 0.4 < calibrate(0.73) < 0.6
    assert calibrate(0.55) < 0.3
    assert calibrate(1.0, of_property=True) < calibrate(1.0)
