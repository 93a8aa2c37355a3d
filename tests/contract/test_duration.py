"""Durations that agents ask for."""

from __future__ import annotations

import pytest

from bespeak.contract.limits import read_duration, write_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86400),
        ("7d", 604800),
        ("90s", 90),
        ("30m", 1800),
        ("P7D", 604800),
        ("PT24H", 86400),
        ("P1DT2H3M4S", 93784),
        ("P2W", 1209600),
        ("PT90S", 90),
    ],
)
def test_duration_is_read_in_seconds(text: str, seconds: int) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7 d", "-7d", "1.5h", "0s", "P", "PT", "P1M", "P1Y", "7D", "PT1D", "9999999999d", "PT0S"]
)
def test_other_text_is_not_a_duration(text: str) -> None:
    assert read_duration(text) is None


@pytest.mark.parametrize(("seconds", "text"), [(86400, "1d"), (90000, "25h"), (3600.0, "1h"), (61, "61s"), (120, "2m")])
def test_duration_is_written_in_its_largest_unit(seconds: float, text: str) -> None:
    assert write_duration(seconds) == text
    assert read_duration(text) == seconds
