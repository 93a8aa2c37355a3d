"""Dates and times in English, relative to a moment: `next Tuesday at seven`, `from the 3rd to the 5th of May`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from bespeak.text.values.numbers import (
    CALENDAR,
    CARDINALS,
    ENDINGS,
    ORDINALS,
    SECONDS,
    Reading,
    Tokens,
    add_to,
    is_small,
    month_length,
    read_amount,
    read_number,
)

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|"
        "november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        "monday mon|tuesday tue tues|wednesday wed weds|thursday thu thur thurs|friday fri|saturday sat|sunday sun".split(
            "|"
        )
    )
    for name in (*names.split(), f"{names.split()[0]}s")
}
_HOMONYMS: Final = frozenset("may march mar sat sun wed mon fri dec jan".split())  # words with other meanings
_HOLIDAYS: Final = {
    "new year's eve": (12, 31), "new year's day": (1, 1), "new year's": (1, 1), "christmas eve": (12, 24),
    "christmas day": (12, 25), "christmas": (12, 25), "boxing day": (12, 26), "halloween": (10, 31),
    "valentine's day": (2, 14), "new year": (1, 1),
}  # fmt: skip
_HOLIDAY_STARTS: Final = frozenset(name.split()[0] for name in _HOLIDAYS)
_DAYS: Final = {"today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yesterday": -1}
_PARTS: Final = {
    "morning": (6, 12), "afternoon": (12, 18), "evening": (18, 22), "night": (20, 23), "noon": (12, 13),
    "lunchtime": (12, 14),
}  # fmt: skip
_HOURS: Final = {"noon": time(12), "midday": time(12), "midnight": time(0)}
_TURNS: Final = {
    "this": 0,
    "next": 1,
    "last": -1,
    "past": -1,
    "coming": 0,
    "upcoming": 0,
    "previous": -1,
    "following": 1,
}
_EDGES: Final = {"start": 0, "beginning": 0, "middle": 1, "mid": 1, "end": 2}
_BEFORE_TIME: Final = frozenset("at @ around about by until till before after from between since circa".split())
_BEFORE_DATE: Final = frozenset(
    "on by until till from since before after between to through of in for and due - –".split()
)
_JOINTS: Final = frozenset((",", "at", "@", "around", "about", "by", "-"))
_CLOSING: Final = frozenset(
    "on for in with and or at to of until till from by please if is are was but so then via using as today tomorrow "
    "tonight this next o'clock around near because when while am pm that not after before - – — , . ; : ! ? ) ( \" '".split()
)  # words and signs behind a number that counts nothing
_TO: Final = frozenset(("to", "until", "till", "through", "thru", "-", "–", "—"))
_MORNING: Final = frozenset("breakfast morning mornings sunrise dawn wake alarm am jog commute school".split())
_EVENING: Final = frozenset(
    "dinner supper evening evenings tonight night nights drinks cocktails concert party movie film show theatre theater "
    "cinema pm sunset restaurant bar".split()
)
_MIDDAY: Final = frozenset(("lunch", "brunch", "afternoon", "afternoons", "tea"))
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)?(?!\w)")
_FIGURES: Final = re.compile(
    r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?)(?![\w/-])"
    r"|(?P<a>\d\d?)(?P<t>[-/.])(?P<b>\d\d?)(?P=t)(?P<c>\d{4}|\d\d)(?![\w/-])"
    r"|(?P<e>\d\d?)/(?P<f>\d\d?)(?![\w/%-])"
)


class Times:
    """Readers of dates and times in one text. `now` is the clock, `order` the one of day and month in figures."""

    def __init__(self, tokens: Tokens, now: datetime, order: str | None) -> None:
        self.tokens, self.words = tokens, tokens.words
        self.now, self.today, self.order = now, now.date(), order
        said = set(tokens.words)
        self._context = (bool(said & _MORNING), bool(said & _MIDDAY), bool(said & _EVENING))

    def read(self, at: int, *, is_time: bool = False) -> Reading | None:
        """Read a date, a time, or both in either order. A bare number is a time if `is_time` or a word tells so."""
        day = self._read_day(at)
        if day is not None:
            return self._with_clock(day) if day.kind == "date" else day
        clock = self._read_clock(at, is_time=is_time)
        return None if clock is None else self.with_day(clock)

    def _with_clock(self, day: Reading) -> Reading:
        words, end = self.words, day.end
        part = self._read_part(end)
        if part is not None:
            day.unit, day.end = part
            end = day.end
        joint = words[end] if words[end] in _JOINTS else ""
        place = end + (joint != "")
        if joint == "," and words[place] in _JOINTS:
            joint, place = words[place], place + 1
        clock = self._read_clock(place, is_time=joint in _BEFORE_TIME)
        if clock is None or (joint in ("-", "by") and clock.is_open):
            return day
        return self._join(day, clock, day.start, clock.end)

    def with_day(self, clock: Reading) -> Reading:
        """Add the date behind a time or a range of times, if there is one."""
        words, place = self.words, clock.end
        part = self._read_part(place)
        if part is not None:
            clock.unit, clock.end = part
            place = clock.end
        place += words[place] == ","
        place += words[place] in ("on", "of")
        day = self._read_day(self.skip_article(place))
        if day is None or day.kind != "date":
            return clock
        later = self._read_part(day.end)
        if later is not None:
            day.unit, day.end = later
        return self._join(day, clock, clock.start, day.end)

    def _join(self, day: Reading, clock: Reading, start: int, end: int) -> Reading:
        joined = replace(
            clock, kind="datetime", start=start, end=end, day=day.day, how=day.how, unit=clock.unit or day.unit,
            certainty=min(day.certainty, clock.certainty),
        )  # fmt: skip
        if clock.ends is not None:
            first, last = (replace(one, kind="datetime", day=day.day, unit=joined.unit) for one in clock.ends)
            joined.kind, joined.ends = "range", (first, last)
        return joined

    def skip_article(self, at: int) -> int:
        """Return the place behind an article."""
        return at + 1 if self.words[at] == "the" else at

    def closes(self, at: int) -> bool:
        """Return True if the word here is not one that a number before it counts."""
        word = self.words[at]
        return not word or word in _CLOSING or word in _DAYS or word in _WEEKDAYS or not word[0].isalnum()

    def _read_part(self, at: int) -> tuple[str, int] | None:
        words = self.words
        place = at
        if words[place] == "at" and words[place + 1] == "night":
            place += 1
        elif words[place : place + 2] == ["in", "the"]:
            place += 2
        elif words[place] == "tonight":
            return None
        return (words[place], place + 1) if words[place] in _PARTS else None

    # Times of day

    def _read_clock(self, at: int, *, is_time: bool = False) -> Reading | None:
        words = self.words
        if words[at] in _HOURS:
            return Reading("time", at, at + 1, clock=_HOURS[words[at]], certainty=0.95)
        is_time = is_time or (at > 0 and words[at - 1] in ("at", "@"))
        return self._read_relative(at, is_time) or self._read_hour(at, is_time)

    def _read_relative(self, at: int, is_time: bool) -> Reading | None:
        """Read half past six, quarter to seven, ten past five."""
        words = self.words
        place = at + (words[at] == "a")
        if words[place] in ("half", "quarter"):
            minutes, place = 30 if words[place] == "half" else 15, place + 1
        else:
            found = read_number(self.tokens, place)
            if found is None or found.is_ordinal or found.value not in (5, 10, 15, 20, 25):
                return None
            minutes, place = int(found.value), found.end
            place += words[place] == "minutes"
        direction = words[place]
        if direction not in ("past", "to", "before", "after") or (direction == "before" and not is_time):
            return None
        if direction == "after" or (direction == "to" and minutes == 30):
            return None
        hour = self._read_hour(place + 1, is_time=True)
        if hour is None or hour.clock is None or hour.clock.minute or hour.clock.hour == 0:
            return None
        plain = words[at].isdecimal() or words[at] in CARDINALS
        if (
            plain
            and direction == "to"
            and hour.is_open
            and not is_time
            and words[hour.end : hour.end + 1] != ["o'clock"]
        ):
            return None  # five to ten guests
        total = hour.clock.hour * 60 + (minutes if direction == "past" else -minutes)
        return replace(hour, start=at, clock=time(total // 60 % 24, total % 60))

    def _read_hour(self, at: int, is_time: bool) -> Reading | None:
        figures = self._read_figures(at)
        if figures is None:
            return None
        hour, minute, end, exact = figures
        words, word = self.words, self.words[figures[2]]
        half = word.replace(".", "")
        said = half in ("am", "pm") and hour <= 12 and hour > 0 and word != "a"
        if said:
            hour, end = hour % 12 + (12 if half == "pm" else 0), end + 1
        elif word in ("o'clock", "oclock"):
            is_time, end = True, end + 1
        elif not exact and not self._tells_time(at, end, is_time):
            return None
        if hour > 23 or minute > 59:
            return None
        zoned = words[end] in ("utc", "gmt", "z")
        clock = time(hour, minute, tzinfo=UTC if zoned else None)
        full = self.words[at].startswith("0") or hour > 12 or hour == 0
        certainty = 0.98 if said or (exact and full) else 0.9
        return Reading("time", at, end + zoned, clock=clock, certainty=certainty, is_open=not said and not full)

    def _tells_time(self, at: int, end: int, is_time: bool) -> bool:
        words = self.words
        if words[at][:1].isdecimal() and not words[at].isdecimal() and not (is_time and "." in words[at]):
            return False
        if words[end] == "tonight" or (words[end : end + 2] == ["in", "the"] and words[end + 2] in _PARTS):
            return True
        return is_time and self.closes(end) and not (words[end] in ("-", ".") and self.tokens.joins(end + 1))

    def _read_figures(self, at: int) -> tuple[int, int, int, bool] | None:
        """Return hour, minute, the place behind, and whether the form itself says that it is a time."""
        words, joins = self.words, self.tokens.joins
        word = words[at]
        if word.isdecimal() and len(word) <= 2:
            minutes = words[at + 2]
            if words[at + 1] == ":" and joins(at + 1) and joins(at + 2) and len(minutes) == 2 and minutes.isdecimal():
                end = at + 3
                if words[end] == ":" and joins(end) and joins(end + 1) and words[end + 1].isdecimal():
                    end += 2
                return int(word), int(minutes), end, True
            return int(word), 0, at + 1, False
        hour, point, minute = word.partition(".")
        if point and len(minute) == 2 and len(hour) <= 2 and hour.isdecimal() and minute.isdecimal():
            return int(hour), int(minute), at + 1, False
        if not 0 < CARDINALS.get(word, 0) <= 12:
            return None
        end = at + 1
        found = read_number(self.tokens, end) if words[end] in CARDINALS else None
        if found is not None and 10 <= found.value < 60 and not found.is_ordinal:
            return CARDINALS[word], int(found.value), found.end, False
        return CARDINALS[word], 0, end, False

    # Days

    def _read_day(self, at: int) -> Reading | None:
        word = self.words[at]
        if word in _DAYS:
            unit = "evening" if word == "tonight" else ""
            return self._day(at, at + 1, self.today + timedelta(_DAYS[word]), unit=unit)
        if word in _WEEKDAYS:
            return self._read_weekday(at)
        if word in _MONTHS:
            return self._read_month(at)
        if word in _TURNS:
            return self._read_turn(at)
        if word[:1].isdecimal() or word in ORDINALS:
            return self._read_numbered(at)
        for reader, starts in _STARTS:
            if word in starts:
                return reader(self, at)
        return None

    def _day(self, start: int, end: int, day: date, certainty: float = 1.0, how: str = "", unit: str = "") -> Reading:
        return Reading("date", start, end, day=day, certainty=certainty, how=how, unit=unit)

    def _period(self, start: int, end: int, first: date, last: date, certainty: float, unit: str) -> Reading:
        return Reading("range", start, end, (first, last), certainty, unit)

    def _follows(self, at: int) -> bool:
        """Return True if the word before tells that a date follows."""
        return at > 0 and (self.words[at - 1] in _BEFORE_DATE or self.words[at - 1] in ("the", ","))

    def _read_weekday(self, at: int) -> Reading | None:
        words, word = self.words, self.words[at]
        end = at + 1 + (words[at + 1] == "." and len(word) < 5 and self.tokens.joins(at + 1) and words[at + 2] != "")
        if word in _HOMONYMS and not (self._follows(at) or words[end] in ("at", ",") or words[end] in _MONTHS):
            return None
        wanted = _WEEKDAYS[word]
        place = self.skip_article(end + (words[end] == ","))
        if words[place : place + 1] != [""] and (words[place] in _MONTHS or words[place][:1].isdecimal()):
            day = self._read_month(place) if words[place] in _MONTHS else self._read_numbered(place)
            if day is not None and day.kind == "date" and day.day is not None:
                return replace(day, start=at, certainty=day.certainty if day.day.weekday() == wanted else 0.5)
        place = end + (words[end] in ("of", "the"))
        if words[place] in ("next", "this", "last") and words[place + 1] == "week":
            monday = self.today - timedelta(self.today.weekday() - 7 * _TURNS[words[place]])
            return self._day(at, place + 2, monday + timedelta(wanted))
        ahead = (wanted - self.today.weekday()) % 7
        if at and words[at - 1] == "since":
            return self._day(at, end, self.today - timedelta((7 - ahead) % 7 or 7), 0.9, "past")
        return self._day(at, end, self.today + timedelta(ahead), 0.95 if ahead else 0.7, "weekday")

    def _read_turn(self, at: int) -> Reading | None:
        """Read this, next and last with a weekday, a period, a part of the day, or a count of units."""
        words, turn = self.words, _TURNS[self.words[at]]
        word = words[at + 1]
        if word in _WEEKDAYS:
            ahead = (_WEEKDAYS[word] - self.today.weekday()) % 7
            if turn < 0:
                return self._day(at, at + 2, self.today - timedelta((7 - ahead) % 7 or 7), 0.9, "past")
            if turn == 0:
                return self._day(at, at + 2, self.today + timedelta(ahead), 0.95)
            is_near = 0 < ahead < 7 - self.today.weekday()  # people differ within the same week
            return self._day(at, at + 2, self.today + timedelta(ahead or 7), 0.8 if is_near else 0.9)
        if word in _PARTS and turn <= 0:
            return self._day(at, at + 2, self.today + timedelta(turn), 0.95, unit=word)
        if word in _MONTHS:
            year = self.today.year + (_MONTHS[word] < self.today.month) + (turn if turn < 0 else 0)
            year += turn < 0 and _MONTHS[word] < self.today.month and -1 + 1
            first = date(year, _MONTHS[word], 1)
            return self._period(at, at + 2, first, _last_day(first), 0.7, "month")
        if word in ("week", "weekend", "month", "year", "quarter"):
            first, last = self._turn(word, turn)
            return self._period(at, at + 2, first, last, 0.7 if word != "weekend" or turn == 0 else 0.6, word)
        count = read_amount(self.tokens, at + 1) if turn else None
        if count is None or count.kind != "duration":
            return None
        return self._read_span(at, count, turn)

    def _read_span(self, at: int, count: Reading, turn: int) -> Reading:
        if is_small(count):
            moment = self.now.replace(microsecond=0)
            ends: tuple[date, date] = (moment, add_to(moment, count, turn))
        else:
            ends = (self.today, add_to(self.today, count, turn))
        return Reading("range", at, count.end, ends if turn > 0 else ends[::-1], 0.8, count.unit)

    def _turn(self, period: str, turn: int) -> tuple[date, date]:
        today = self.today
        if period == "week":
            first = today - timedelta(today.weekday() - 7 * turn)
            return first, first + timedelta(6)
        if period == "weekend":
            first = today - timedelta(today.weekday() - 5 - 7 * turn)
            return first, first + timedelta(1)
        months = CALENDAR[period]
        whole = ((today.year * 12 + today.month - 1) // months + turn) * months
        first = date(whole // 12, whole % 12 + 1, 1)
        last = whole + months - 1
        return first, _last_day(date(last // 12, last % 12 + 1, 1))

    def _read_month(self, at: int) -> Reading | None:
        """Read May 3, May 3rd 2027, May 2027, in May."""
        words, month = self.words, _MONTHS[self.words[at]]
        end = at + 1 + (words[at + 1] == "." and len(words[at]) < 5 and self.tokens.joins(at + 1))
        place = self.skip_article(end)
        found = read_number(self.tokens, place) if words[place] in ORDINALS or words[place][:1].isalnum() else None
        if found is not None and 1 <= found.value <= 31 and (found.is_ordinal or words[place].isdecimal()):
            return self._dated(at, found.end, month, int(found.value))
        year = self._read_year(end)
        if year is not None:
            first = date(year[0], month, 1)
            return self._period(at, year[1], first, _last_day(first), 0.9, "month")
        before = words[at - 1] if at else ""
        named = before in ("in", "of", "during", "until", "by", "since", "through", "till")
        if not named and (words[at] in _HOMONYMS or not self.tokens.said(at)[:1].isupper()):
            return None
        first = date(self.today.year + (month < self.today.month), month, 1)
        return self._period(at, end, first, _last_day(first), 0.7 if named else 0.4, "month")

    def _read_year(self, at: int) -> tuple[int, int] | None:
        words = self.words
        place = at + (words[at] in (",", "of"))
        word = words[place]
        if (
            len(word) == 4
            and word.isdecimal()
            and 1900 <= int(word) <= 2199
            and not self.tokens.joins(place + 1) | (words[place + 1] == ":")
        ):
            return int(word), place + 1
        if (
            len(word) == 4
            and word.isdecimal()
            and 1900 <= int(word) <= 2199
            and words[place + 1] in (",", ".", "?", "!", ")")
        ):
            return int(word), place + 1
        return None

    def _dated(self, start: int, end: int, month: int, day: int) -> Reading | None:
        year = self._read_year(end)
        if year is not None:
            if day > month_length(year[0], month):
                return None
            return self._day(start, year[1], date(year[0], month, day), how="year")
        found = self._next_date(month, day)
        return None if found is None else self._day(start, end, found, 0.95, "month")

    def _next_date(self, month: int, day: int) -> date | None:
        """Return the next such date, today included; 29 February may be years ahead."""
        for year in range(self.today.year, self.today.year + 9):
            if 1 <= day <= month_length(year, month) and date(year, month, day) >= self.today:
                return date(year, month, day)
        return None

    def _read_numbered(self, at: int) -> Reading | None:
        """Read 3rd of May, 3 May 2027, the 9th, 2027-05-03, 3/5, two days ago, first Monday of May."""
        words = self.words
        figures = self._read_figured(at) if words[at][0].isdecimal() else None
        if figures is not None:
            return figures
        found = read_number(self.tokens, at)
        if found is None:
            return None
        place = found.end
        if found.is_ordinal and words[place] in _WEEKDAYS and words[place + 1] in ("of", "in") and found.value <= 5:
            return self._read_nth(at, int(found.value), place)
        if not 1 <= found.value <= 31 or (found.is_word and not found.is_ordinal):
            return None
        place = self.skip_article(place + (words[place] == "of")) + (
            words[place] == "-" and words[place + 1] in _MONTHS
        )
        if words[place] in _MONTHS and (words[place] != "may" or words[place + 1] not in ("i", "we", "be")):
            end = place + 1 + (words[place + 1] == "." and len(words[place]) < 4 and words[place + 2].isdecimal())
            return self._dated(at, end, _MONTHS[words[place]], int(found.value))
        if words[place] in ("this", "next") and words[place + 1] == "month":
            first, last = self._turn("month", _TURNS[words[place]])
            return self._day(at, place + 2, first.replace(day=int(found.value))) if found.value <= last.day else None
        before = words[at - 1] if at else ""
        if found.is_ordinal and not found.is_word and before in ("the", "on", "by") and self.closes(found.end):
            return self._of_month(at, found.end, int(found.value))
        return None

    def _of_month(self, at: int, end: int, day: int) -> Reading:
        first = self.today.replace(day=1)
        while day > month_length(first.year, first.month) or first.replace(day=day) < self.today:
            first = _last_day(first) + timedelta(1)
        return self._day(at, end, first.replace(day=day), 0.8, "day")

    def _read_nth(self, at: int, number: int, place: int) -> Reading | None:
        inside = self._read_day(self.skip_article(place + 2))
        if inside is None or inside.kind != "range" or inside.unit != "month":
            return None
        first: date = inside.value[0]
        day = first + timedelta((_WEEKDAYS[self.words[place]] - first.weekday()) % 7 + 7 * number - 7)
        return self._day(at, inside.end, day, 0.9) if day <= inside.value[1] else None

    def _read_figured(self, at: int) -> Reading | None:
        tokens = self.tokens
        text, start = tokens.text, tokens.starts[at]
        if stamp := _STAMP.match(text, start):
            moment = datetime.fromisoformat(stamp[0])
            end = bisect_left(tokens.starts, stamp.end())
            return Reading("datetime", at, end, day=moment.date(), clock=moment.timetz())
        found = _FIGURES.match(text, start)
        if found is None:
            return None
        end = bisect_left(tokens.starts, found.end())
        if tokens.ends[end - 1] != found.end():
            return None
        if found["y"]:
            return self._day(at, end, date(int(found["y"]), int(found["m"]), int(found["d"])), how="year")
        if found["c"]:
            year = int(found["c"]) + (2000 if len(found["c"]) == 2 else 0)
            month, day, certainty = self._order(int(found["a"]), int(found["b"]), is_point=found["t"] == ".")
            if found["t"] != "/" and len(found["c"]) == 2:
                return None  # a version, or a code
            return self._day(at, end, date(year, month, day), certainty, "year")
        if found[0] == "24/7" or found["f"] == "0":
            return None
        month, day, certainty = self._order(int(found["e"]), int(found["f"]), is_point=False)
        next_date = self._next_date(month, day) if month <= 12 else None
        told = self._follows(at) or not self.closes(end)
        return (
            None if next_date is None else self._day(at, end, next_date, certainty * (0.95 if told else 0.8), "month")
        )

    def _order(self, first: int, second: int, *, is_point: bool) -> tuple[int, int, float]:
        """Return month, day and certainty. Dates with points name the day first."""
        if first > 12 or second > 12 or first == second:
            return (second, first, 0.95) if first > 12 else (first, second, 0.95)
        if self.order == "DMY" or (is_point and self.order is None):
            return second, first, 0.9
        return first, second, 0.9 if self.order == "MDY" else 0.5

    def _read_in(self, at: int) -> Reading | None:
        """Read in two hours, in 2027."""
        words = self.words
        year = self._read_year(at + 1)
        if year is not None and words[at + 1] != "," and self.closes(year[1]):
            return self._period(at + 1, year[1], date(year[0], 1, 1), date(year[0], 12, 31), 0.7, "year")
        place = at + 1
        while words[place] in ("about", "around", "exactly", "the"):
            place += 1
        if words[at + 1] == "the":
            return None
        count = read_amount(self.tokens, place)
        return self._moved(at, count.end, count, 1) if count is not None and count.kind == "duration" else None

    def moved_by(self, count: Reading) -> Reading | None:
        """Read two days ago, an hour from now, a week from Friday, two days after Christmas."""
        words, end = self.words, count.end
        word = words[end]
        if word in ("ago", "hence"):
            return self._moved(count.start, end + 1, count, -1 if word == "ago" else 1)
        if word not in ("from", "after", "before"):
            return None
        if words[end + 1] in ("now", "today") and word == "from":
            return self._moved(count.start, end + 2, count, 1)
        base = self.read(self.skip_article(end + 1))
        if base is None or base.kind != "date" or base.day is None or is_small(count):
            return None
        day = add_to(base.day, count, -1 if word == "before" else 1)
        return self._day(count.start, base.end, day, min(0.95, base.certainty))

    def _moved(self, start: int, end: int, count: Reading, sign: int) -> Reading:
        certainty = max(count.certainty, 0.9)
        if not is_small(count):
            return self._day(start, end, add_to(self.today, count, sign), certainty)
        moment = add_to(self.now.replace(microsecond=0), count, sign)
        assert isinstance(moment, datetime)
        return Reading("datetime", start, end, day=moment.date(), clock=moment.timetz(), certainty=certainty)

    def _read_after(self, at: int) -> Reading | None:
        """Read day after tomorrow, day before yesterday."""
        words = self.words
        if words[at + 1] == "after" and words[at + 2] in ("tomorrow", "tmrw"):
            return self._day(at, at + 3, self.today + timedelta(2))
        if words[at + 1] == "before" and words[at + 2] == "yesterday":
            return self._day(at, at + 3, self.today - timedelta(2))
        return None

    def _read_weekend(self, at: int) -> Reading:
        first, last = self._turn("weekend", 0)
        return self._period(at, at + 1, first, last, 0.7, "weekend")

    def _read_edge(self, at: int) -> Reading | None:
        """Read end of the month, beginning of next week, mid May."""
        words, edge = self.words, _EDGES[self.words[at]]
        place = at + 1 + (words[at + 1] in ("of", "-"))
        if words[at] != "mid" and words[at + 1] != "of":
            return None
        if words[place] == "the" and words[place + 1] in ("week", "month", "year", "quarter"):
            period, end = self._turn(words[place + 1], 0), place + 2
        else:
            inside = self._read_day(self.skip_article(place))
            if inside is None or inside.kind != "range" or isinstance(inside.value[0], datetime):
                return None
            period, end = inside.value, inside.end
        first, last = period
        middle = first + (last - first) // 2
        return self._day(at, end, (first, middle, last)[edge], 0.7 if edge != 1 else 0.5)

    def _read_holiday(self, at: int) -> Reading | None:
        for count in (3, 2, 1):
            holiday = _HOLIDAYS.get(" ".join(self.words[at : at + count]))
            if holiday is not None:
                return self._dated(at, at + count, *holiday)
        return None

    def _read_day_part(self, at: int) -> Reading | None:
        """Read in the evening, where no date is named."""
        words = self.words
        if at < 2 or words[at - 1] != "the" or words[at - 2] not in ("in", "during"):
            return None
        first, last = _PARTS[words[at]]
        return Reading("range", at, at + 1, (time(first), time(last)), 0.6, words[at])

    # Ranges and the end of reading

    def read_range(self, first: Reading) -> Reading | None:
        """Read the other end of a range behind its first end, and give each what only the other says."""
        words, end = self.words, first.end
        before = words[first.start - 1] if first.start else ""
        before = words[first.start - 2] if before == "the" and first.start > 1 else before
        if words[end] not in _TO and not (words[end] == "and" and before == "between"):
            return None
        at = self.skip_article(end + 1)
        last = self.read(at, is_time=first.clock is not None) or read_amount(self.tokens, at)
        if last is None:
            return None
        return self._merge(first, last, is_told=before in ("from", "between"))

    def _merge(self, first: Reading, last: Reading, *, is_told: bool) -> Reading | None:
        first, last = self._lend(first, last)
        if first.kind != last.kind or first.kind == "range" or first.unit == "ordinal" != last.unit:
            return None
        if first.clock is not None and last.clock is not None:
            return self._merge_clocks(first, last)
        if first.day is not None and last.day is not None:
            last = self._follow(first, last)
            if last.day is None or last.day < first.day:
                return None
            return _range_of(first, last, min(first.certainty, last.certainty))
        if first.value is None or last.value is None or first.unit != last.unit:
            return None
        if first.value > last.value or (first.kind == "number" and is_told):
            clocks = [self._as_clock(one) for one in (first, last)]
            if is_told and clocks[0] and clocks[1] and (first.value > last.value or self._read_day_behind(last.end)):
                merged = self._merge_clocks(clocks[0], clocks[1])
                return replace(self.with_day(merged), certainty=0.6)
        if first.value > last.value:
            return None
        return _range_of(first, last, min(first.certainty, last.certainty))

    def _read_day_behind(self, at: int) -> bool:
        place = self.skip_article(at + (self.words[at] in ("on", ",")))
        found = self._read_day(place)
        return found is not None and found.kind == "date"

    def _lend(self, first: Reading, last: Reading) -> tuple[Reading, Reading]:
        """Give an end the unit, month or day that only the other end names: 3 to 5 pm, 3rd to 5th of May, May 3 to 5."""
        if first.kind == "number" and last.clock is not None:
            first = self._as_clock(first) or first
        elif first.kind == "number" and last.kind in ("money", "percent", "quantity", "duration"):
            first = _counted_like(first, last)
        elif (
            first.kind == "number"
            and last.kind == "date"
            and last.day
            and 1 <= first.value <= month_length(last.day.year, last.day.month)
        ):
            first = self._day(first.start, first.end, last.day.replace(day=int(first.value)), last.certainty, last.how)
        elif first.how == "day" and last.how in ("month", "year") and first.day and last.day:
            first = replace(first, day=last.day.replace(day=first.day.day), how=last.how, certainty=last.certainty)
        elif last.kind == "number" and first.kind == "date" and first.how in ("month", "year", "day") and first.day:
            if 1 <= last.value <= month_length(first.day.year, first.day.month) and self.closes(last.end):
                last = self._day(
                    last.start, last.end, first.day.replace(day=int(last.value)), first.certainty, first.how
                )
        elif last.kind == "number" and first.kind == "money":
            last = _counted_like(last, first)
        if first.kind == "time" and last.kind == "datetime":
            first = replace(first, kind="datetime", day=last.day)
        elif first.kind == "datetime" and last.kind == "time":
            last = replace(last, kind="datetime", day=first.day)
        return first, last

    def _as_clock(self, number: Reading) -> Reading | None:
        if number.kind != "number" or not isinstance(number.value, int) or not 0 < number.value < 24:
            return None
        clock = time(number.value)
        return Reading("time", number.start, number.end, clock=clock, certainty=0.9, is_open=number.value <= 12)

    def _follow(self, first: Reading, last: Reading) -> Reading:
        if first.day is None or last.day is None or last.day >= first.day:
            return last
        if last.how == "weekday":
            return replace(last, day=last.day + timedelta(-((last.day - first.day).days // 7) * 7))
        if last.how == "day":
            return replace(last, day=add_to(last.day, Reading("duration", 0, 0, how="month:1"), 1))
        if last.how == "month":
            return replace(last, day=last.day.replace(year=last.day.year + 1))
        return last

    def _merge_clocks(self, first: Reading, last: Reading) -> Reading:
        part = first.unit or last.unit
        first, last = replace(first, unit=part), replace(last, unit=part)
        if first.is_open and (last.is_open or part):
            first = self._settled(first)
        assert first.clock is not None
        assert last.clock is not None
        if first.is_open:
            later = _shifted(first.clock)
            first = replace(first, clock=later if later < last.clock else first.clock, is_open=False)
        elif last.is_open:
            is_late = last.clock <= first.clock or (last.clock.hour == 12 and first.clock.hour > 12)
            last = replace(last, clock=_shifted(last.clock) if is_late else last.clock, is_open=False)
        if first.day is not None and first.day == last.day and last.clock and first.clock and last.clock < first.clock:
            last = replace(last, day=first.day + timedelta(1))
        return replace(_range_of(first, last, min(first.certainty, last.certainty)), day=first.day)

    def _settled(self, reading: Reading) -> Reading:
        """Decide between morning and evening: by the part of the day, the words of the text, the clock, or custom."""
        clock = reading.clock
        if not reading.is_open or clock is None:
            return reading
        is_late, certainty = self._is_late(clock, reading)
        clock = _shifted(clock) if is_late != (clock.hour == 12) else clock
        return replace(reading, clock=clock, certainty=min(reading.certainty, certainty), is_open=False)

    def _is_late(self, clock: time, reading: Reading) -> tuple[bool, float]:
        hour = clock.hour
        morning, midday, evening = self._context
        if reading.unit:
            return reading.unit != "morning" and not (reading.unit == "night" and (hour < 5 or hour == 12)), 0.95
        if hour == 12:
            return True, 0.8
        if midday and not evening:
            return hour < 10, 0.85
        if morning != evening:
            return evening, 0.85
        if reading.day in (None, self.today) and clock.replace(tzinfo=None) <= self.now.time() < _shifted(
            clock
        ).replace(tzinfo=None):
            if reading.day is not None:
                return True, 0.75
        return hour < 8, 0.5 if hour == 7 else 0.6 if hour > 7 else 0.7

    def finish(self, reading: Reading) -> Reading:
        """Return a reading with its value."""
        if reading.ends is not None:
            first, last = (self.finish(one) for one in reading.ends)
            certainty = min(reading.certainty, first.certainty, last.certainty)
            return replace(reading, value=(first.value, last.value), certainty=certainty, ends=(first, last))
        if reading.day is None and reading.clock is None:
            return reading
        settled = self._settled(reading)
        day, clock = settled.day, settled.clock
        if clock is None:
            return replace(settled, value=day)
        unit = ""
        if day is None:
            return replace(settled, value=clock, unit=unit)
        zone = clock.tzinfo or self.now.tzinfo
        return replace(settled, value=datetime.combine(day, clock.replace(tzinfo=None), zone), unit=unit)


def _shifted(clock: time) -> time:
    return clock.replace(hour=(clock.hour + 12) % 24)


def _last_day(first: date) -> date:
    return first.replace(day=month_length(first.year, first.month))


def _range_of(first: Reading, last: Reading, certainty: float) -> Reading:
    return Reading(
        "range",
        first.start,
        last.end,
        None,
        certainty,
        first.unit if first.value is not None else "",
        ends=(first, last),
    )


def _counted_like(number: Reading, other: Reading) -> Reading:
    value = number.value
    if other.kind == "money":
        value = type(other.value)(str(value))
    elif other.kind == "duration":
        value = timedelta(seconds=float(SECONDS[other.unit] * value))
    return replace(number, kind=other.kind, unit=other.unit, value=value, how=other.how.partition(":")[0])


_STARTS: Final[tuple[tuple[Callable[[Times, int], Reading | None], frozenset[str]], ...]] = (
    (Times._read_in, frozenset(("in",))),
    (Times._read_after, frozenset(("day",))),
    (Times._read_weekend, frozenset(("weekend",))),
    (Times._read_edge, frozenset(_EDGES)),
    (Times._read_holiday, _HOLIDAY_STARTS),
    (Times._read_day_part, frozenset(_PARTS)),
)
TIME_STARTS: Final = frozenset(
    (
        *_DAYS,
        *_WEEKDAYS,
        *_MONTHS,
        *_TURNS,
        *ORDINALS,
        *_HOURS,
        "half",
        "quarter",
        *(word for _, words in _STARTS for word in words),
    )
)
