"""Timestamps: formatting and parsing are inverse."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.instant import read_instant, read_moment, write_instant, write_milliseconds


@pytest.mark.parametrize(
    "text", ["2026-12-01T10:00:00Z", "2026-12-01T11:00:00+01:00", "20261201T100000Z", "2026-12-01 10:00:00.000"]
)
def test_a_moment_is_read_in_every_form_of_iso_8601(text: str) -> None:
    assert read_instant(text) == 1796119200.0


@rows(
    "text",
    *("", "tomorrow", "2026-13-01T10:00:00Z", "1796119200", "+" * 1000, "PT2H"),
    *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z"),
)
def test_an_invalid_timestamp_is_none(text: str) -> None:
    assert read_instant(text) is None


def test_a_moment_before_1970_is_one_too_and_all_are_in_utc() -> None:
    assert read_moment("1960-01-01T02:00:00+02:00") == datetime(1960, 1, 1, tzinfo=UTC)
    assert read_moment("2026-12-01") == datetime(2026, 12, 1, tzinfo=UTC)
    assert read_moment("0001-01-01T00:00:00+14:00") is None


@given(st.integers(0, 4_000_000_000))
def test_the_round_trip_preserves_the_second(seconds: int) -> None:
    assert read_instant(write_instant(seconds)) == seconds


@given(st.integers(0, 4_000_000_000), st.integers(0, 999))
def test_the_round_trip_preserves_the_millisecond(seconds: int, thousandths: int) -> None:
    text = write_milliseconds(seconds + thousandths / 1000)
    assert read_instant(text) == pytest.approx(seconds + thousandths / 1000, abs=0.0011)
    assert (text[19], text[:19]) == (".", write_instant(seconds)[:19])


@given(st.text())
def test_any_text_gives_a_timestamp_or_none(text: str) -> None:
    moment = read_instant(text)
    assert moment is None or isfinite(moment)
