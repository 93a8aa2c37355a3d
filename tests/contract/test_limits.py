"""Rates: notation, and the interval between two calls."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.limits import (
    MOST,
    SECONDS,
    Cost,
    Rate,
    RateLimits,
    parse_rate,
    read_cost,
    read_duration,
    write_duration,
)
from bespeak.protocol.exchange.header_values import UNITS, parse_budget


@rows(
    "text, rate, interval",
    ("100/s", Rate(100, "s", 100), 10_000_000),
    ("600/min burst 50", Rate(600, "min", 50), 100_000_000),
    (" 3 / s  burst  1 ", Rate(3, "s", 1), 333_333_334),
    ("1/day", Rate(1, "day", 1), 86_400_000_000_000),
    ("1000000/s", Rate(1_000_000, "s", 1_000_000), 1_000),
)
def test_a_rate_is_a_count_for_a_time_and_perhaps_a_burst(text: str, rate: Rate, interval: int) -> None:
    assert parse_rate(text) == rate
    assert rate.interval == interval


@rows(
    "text, reason",
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


def test_limits_without_any_limit_are_false_and_an_empty_mapping_has_no_cost() -> None:
    assert not RateLimits()
    assert RateLimits(address=Rate(1, "s", 1))
    assert RateLimits(endpoints={("BOOK", "/room"): Rate(1, "s", 1)})
    assert read_cost({}) == (None, [])


def test_numbers_and_texts_are_amounts() -> None:
    cost, faults = read_cost({"tokens": 500, "USD": "0.02", "EUR": 0.1, "compute-seconds": 1.5, "calls": Decimal(3)})
    assert faults == []
    assert cost is not None
    assert str(cost) == "tokens=500, USD=0.02, EUR=0.10, compute-seconds=1.5, calls=3"
    assert cost.to_json() == {"tokens": 500, "USD": "0.02", "EUR": "0.10", "compute-seconds": "1.5", "calls": 3}


@rows(
    "unit, value, reason",
    ("gold", 1, "not one of the units"),
    ("tokens", True, "a number"),
    ("tokens", None, "a number"),
    ("tokens", [1], "a number"),
    ("tokens", -1, "not a valid amount"),
    ("tokens", 0.5, "whole number"),
    ("USD", float("nan"), "not a valid amount"),
    ("USD", float("inf"), "not a valid amount"),
    ("USD", 1e30, "not a valid amount"),
    ("USD", "2 cents", "not a valid amount"),
    ("USD", 0.001, "at most 2"),
    pytest.param("tokens", 10**5000, "not a valid amount", id="digits-beyond-all-measure"),
    ("calls", 0, "must be at least 1"),
)
def test_invalid_amount_is_reported_with_its_unit(unit: str, value: Any, reason: str) -> None:
    cost, [fault] = read_cost({"tokens": 1, unit: value})
    assert cost is None
    assert fault.at == unit
    assert reason in fault.message
    assert len(fault.message) < 300


@given(st.dictionaries(st.sampled_from([*UNITS, "gold"]), st.integers() | st.floats() | st.text(max_size=12)))
def test_valid_cost_round_trips_as_header_and_json(declared: dict[str, Any]) -> None:
    cost, faults = read_cost(declared)
    if cost is not None:
        assert parse_budget(str(cost)) == cost.amounts
        assert read_cost(cost.to_json()) == (cost, [])
    assert (cost is None) == (bool(faults) or not declared)
    assert Cost({}) != cost


@rows(
    "text, seconds",
    ("24h", 86400),
    ("7d", 604800),
    ("90s", 90),
    ("30m", 1800),
    ("P7D", 604800),
    ("PT24H", 86400),
    ("P1DT2H3M4S", 93784),
    ("P2W", 1209600),
    ("PT90S", 90),
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
