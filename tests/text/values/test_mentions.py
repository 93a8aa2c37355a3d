"""What holds for the mentions of any text: places, order, certainty, time zones, and the work that they take."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.growth import assert_linear

from bespeak.text.values import LONGEST, Mention, find_mentions
from bespeak.text.values.numbers import STARTS as NUMBERS
from bespeak.text.values.times import STARTS as TIMES

NOW = datetime(2026, 11, 19, 10, 30, tzinfo=UTC)
SIGNS = "at on to from - / : , . and 1 3 12 31 2026 99 pm ago hours week past % \" ' @ order"
WORDS = st.sampled_from([*sorted(NUMBERS | TIMES), *SIGNS.split()])
TEXTS = st.text() | st.lists(WORDS, max_size=30).map(" ".join) | st.lists(WORDS, max_size=30).map("".join)
CLOCKS = st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Kiritimati")]))


def only(text: str, **options: Any) -> Mention:
    """Return the only mention of a text."""
    found = find_mentions(text, **{"now": NOW, **options})
    assert len(found) == 1, found
    return found[0]


@given(TEXTS, CLOCKS, st.sampled_from([None, "DMY", "MDY"]))
def test_any_text_has_mentions_inside_of_it_in_order(text: str, now: datetime, order: Any) -> None:
    found = find_mentions(text, now=now, order=order)
    assert found == find_mentions(text, now=now, order=order)
    for one in found:
        assert 0 <= one.start < one.end <= min(len(text), LONGEST)
        assert 0 < one.certainty <= 1
        assert not isinstance(one.value, datetime) or one.value.tzinfo is not None
    for one, other in pairwise(found):
        assert one.start <= other.start
        assert one.end <= other.start or one.kind == "range" or other.edge == "to"


@given(st.dates(date(1900, 1, 1), date(2199, 12, 31)))
def test_dates_are_read_back(day: date) -> None:
    for written in (f"{day}", f"{day:%-d %B %Y}", f"{day:%B %-d, %Y}", f"{day:%A}, {day:%b} {day.day} {day.year}"):
        found = only(f"on {written}")
        assert (found.kind, found.value, found.start, found.end) == ("date", day, 3, 3 + len(written))


@given(st.integers(1, 999_999_999))
def test_numbers_are_read_back(number: int) -> None:
    assert only(f"{number:,} things").value == number
    assert only(f"${number}").value == Decimal(number)


@given(st.times(timezones=st.none()))
def test_times_of_24_hours_and_of_12_hours_are_read_back(clock: time) -> None:
    clock = clock.replace(second=0, microsecond=0)
    assert only(f"at {clock:%I:%M %p}").value == clock
    if clock.hour > 12:
        assert only(f"at {clock:%H:%M}").value == clock


def test_a_clock_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware datetime"):
        find_mentions("tomorrow", now=datetime(2026, 11, 19))


def test_only_the_first_4000_characters_are_read() -> None:
    assert [one.value for one in find_mentions("7 " + "x" * LONGEST + " 8", now=NOW)] == [7]


@rows(
    "sure, doubtful",
    *(("at 7 pm", "at 7"), ("at 7 in the evening", "at 7"), ("dinner at 8", "meet at 8"), ("19:30", "7:30")),
    *(("tomorrow", "next Friday"), ("25/12/2026", "3/5/2026"), ("on 3/5", "3/5"), ("1.5", "1,5"), ("€5", "$5")),
    *(("3 hours", "3 months"), ("order no. 4711", "order 4711"), ("two", "a few"), ("Friday, May 7", "Friday, May 3")),
    *(("this Friday", "Thursday"),),
)
def test_what_has_several_meanings_is_less_certain(sure: str, doubtful: str) -> None:
    first, *_ = find_mentions(sure, now=NOW)
    second, *_ = find_mentions(doubtful, now=NOW)
    assert first.certainty > second.certainty


@rows(
    "text, order, day",
    *(
        ("3/5/2026", "DMY", date(2026, 5, 3)),
        ("3/5/2026", "MDY", date(2026, 3, 5)),
        ("3/5/2026", None, date(2026, 3, 5)),
    ),
    *(("25/12/2026", "MDY", date(2026, 12, 25)), ("3.5.2026", None, date(2026, 5, 3))),
    *(("3.5.2026", "MDY", date(2026, 3, 5)), ("2026/5/3", "DMY", date(2026, 5, 3))),
)
def test_the_order_decides_between_day_and_month(text: str, order: Any, day: date) -> None:
    assert only(text, order=order).value == day
    assert (only(text, order=order).certainty > 0.8) == (order is not None or text != "3/5/2026")


@rows(
    "text, hour",
    *(("breakfast at 8", 8), ("dinner at 8", 20), ("lunch at 1", 13), ("lunch at 11:30", 11), ("at 8 tonight", 20)),
    *(("at 12", 12), ("at 12 at night", 0), ("at 2 at night", 2), ("at 3", 15), ("at 9", 9), ("today at 9", 21)),
)
def test_words_decide_between_morning_and_evening(text: str, hour: int) -> None:
    assert find_mentions(text, now=NOW)[0].value.hour == hour


def test_hours_pass_in_real_time_and_days_on_the_calendar() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    evening = datetime(2026, 3, 28, 23, tzinfo=berlin)  # the clock is put forward at 2
    assert only("in 5 hours", now=evening).value == datetime(2026, 3, 29, 5, tzinfo=berlin)
    assert only("in 1 day", now=evening).value == date(2026, 3, 29)
    assert only("in one month", now=datetime(2026, 1, 31, tzinfo=UTC)).value == date(2026, 2, 28)


def test_dates_without_a_year_are_ahead() -> None:
    assert only("November 19").value == date(2026, 11, 19)
    assert only("November 18").value == date(2027, 11, 18)
    assert only("feb 29").value == date(2028, 2, 29)
    assert only("the 31st").value == date(2026, 12, 31)
    assert only("the 19th").value == date(2026, 11, 19)


def test_a_quotation_hides_what_is_in_it() -> None:
    found = only("Say “tomorrow at a@b.example”")
    assert (found.kind, found.value, found.start, found.end) == ("quoted", "tomorrow at a@b.example", 4, 29)


def test_the_longest_reading_is_kept() -> None:
    assert only("version 2026.11.19-rc1").kind in ("version", "date")
    assert only("+49 30 1234567").value == "+49301234567"
    assert only("https://a.example/2026-11-19").kind == "url"


@given(st.timedeltas(timedelta(minutes=1), timedelta(days=6)))
def test_durations_are_read_back(length: timedelta) -> None:
    minutes = length // timedelta(minutes=1)
    written = f"{minutes // 1440} days, {minutes // 60 % 24} hours and {minutes % 60} minutes"
    assert only(written).value == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "part",
    [
        "1", "1 ", "and ", "one and ", "3 to ", "between 3 and ", "a1-", "'\"", "/a", "a@", "5 million ", "1 hour and ",
        "end of ", "first monday of ", "a week from ", "friday, ", "monday the ", "may ", "1-", "1.", "+1 ", "5/", "“",
    ],
)  # fmt: skip
def test_work_is_linear(part: str) -> None:
    assert_linear(lambda size: find_mentions(part * size, now=NOW), LONGEST // 4 // len(part))
