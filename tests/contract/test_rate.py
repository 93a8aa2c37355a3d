"""Rates: notation, and the interval between two calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.limits import MOST, SECONDS, Rate, RateLimits, parse_rate


@pytest.mark.parametrize(
    ("text", "rate", "interval"),
    [
        ("100/s", Rate(100, "s", 100), 10_000_000),
        ("600/min burst 50", Rate(600, "min", 50), 100_000_000),
        (" 3 / s  burst  1 ", Rate(3, "s", 1), 333_333_334),
        ("1/day", Rate(1, "day", 1), 86_400_000_000_000),
        ("1000000/s", Rate(1_000_000, "s", 1_000_000), 1_000),
    ],
)
def test_a_rate_is_a_count_for_a_time_and_perhaps_a_burst(text: str, rate: Rate, interval: int) -> None:
    assert parse_rate(text) == rate
    assert rate.interval == interval


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "form"),
        ("100", "form"),
        ("100 per second", "form"),
        ("-1/s", "form"),
        ("1.5/s", "form"),
        ("10/s burst", "form"),
        ("10/s burst 5 burst 6", "form"),
        ("10/week", "not one of the units"),
        ("10/m", "not one of the units"),
        ("0/s", "must be 1 to"),
        ("10/s burst 0", "must be 1 to"),
        ("1000001/s", "must be 1 to"),
        ("1/s burst 999999999", "must be 1 to"),
    ],
)
def test_invalid_rate_has_a_reason(text: str, reason: str) -> None:
    found = parse_rate(text)
    assert isinstance(found, str)
    assert reason in found


@given(st.integers(1, MOST), st.sampled_from(sorted(SECONDS)), st.integers(1, MOST))
def test_a_rate_reads_back_and_never_admits_more_than_it_says(count: int, unit: str, burst: int) -> None:
    rate = Rate(count, unit, burst)
    assert parse_rate(str(rate)) == rate
    assert rate.interval * count >= SECONDS[unit] * 1_000_000_000


@given(st.text("0123456789/ smindayburst", max_size=30))
def test_any_text_is_a_rate_or_a_reason(text: str) -> None:
    found = parse_rate(text)
    assert isinstance(found, str) or (1 <= found.count <= MOST and 1 <= found.burst <= MOST)


def test_limits_without_any_limit_are_false() -> None:
    assert not RateLimits()
    assert RateLimits(address=Rate(1, "s", 1))
    assert RateLimits(endpoints={("BOOK", "/room"): Rate(1, "s", 1)})
