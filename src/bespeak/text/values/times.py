"""Dates and times in English, relative to a moment: `next Tuesday at seven`, `from the 3rd to the 5th of May`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from bespeak.text.language.sentence import listed, names, word_set
from bespeak.text.values.numbers import (
    CALENDAR,
    CARDINALS,
    ORDINALS,
    SECONDS,
    Reading,
    Tokens,
    add,
    month_length,
    read_amount,
    read_number,
)

_MONTHS: Final = {word: int(number) for word, number in names("months").items()}
_WEEKDAYS: Final = {word: int(number) for word, number in names("weekdays").items()}
_HOMONYMS: Final = word_set("may march mar sat sun wed mon fri dec jan")  # words with other meanings
_DAYS: Final = {
    "today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "yesterday": -1, "day after tomorrow": 2,
    "day before yesterday": -2,
}  # fmt: skip
_PARTS: Final = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 22), "night": (20, 23)}
_HOURS: Final = {"noon": time(12), "midday": time(12), "midnight": time(0)}
_HOLIDAYS: Final = {
    ("new", "year's", "eve"): (12, 31), ("new", "year's", "day"): (1, 1), ("new", "year's"): (1, 1),
    ("christmas", "eve"): (12, 24), ("christmas", "day"): (12, 25), ("christmas",): (12, 25),
    ("boxing", "day"): (12, 26), ("halloween",): (10, 31), ("valentine's", "day"): (2, 14),
}  # fmt: skip
_LAST: Final = ("last", "past", "previous")
_TURNS: Final = {"this": 0, "coming": 0, "upcoming": 0, "next": 1, "following": 1} | dict.fromkeys(_LAST, -1)
_PLACES: Final = {"start": 0, "beginning": 0, "middle": 1, "mid": 1, "end": 2}
_BEFORE_TIME: Final = word_set("at @ around about by until till before after from between since")
_BEFORE_DAY: Final = word_set(", on by until till from since before after between to through - –")
_BEFORE_DATE: Final = _BEFORE_DAY | word_set("the of in for and")
_BEFORE_MONTH: Final = word_set("in of during until by since through till")
_COUNTED: Final = word_set("people persons guests adults children kids seats tickets rooms")  # in May 5 people
_JOINTS: Final = word_set(", at @ around about by")
_CLOSING: Final = listed("behind-numbers")  # words behind a number that counts nothing
_TO: Final = word_set("to until till through thru - – —")
_HABITS: Final = names("parts-of-the-day")  # words that tell which part of the day a text speaks of
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)?(?!\w)")
_FIGURES: Final = re.compile(
    r"(?:(?P<y>\d{4})([-/.])(?P<m>\d\d?)\2(?P<d>\d\d?)|(?P<a>\d\d?)(?P<s>[-/.])(?P<b>\d\d?)(?:(?P=s)(?P<c>\d{4}|\d\d))?)"
    r"(?![\w/%]|[-.]\d)"
)


class Times:
    """Dates and times of one text. `now` is the clock, `order` that of day and month in figures."""

    def __init__(self, tokens: Tokens, now: datetime, order: str | None) -> None:
        self.tokens, self.words = tokens, tokens.words
        self.now, self.today, self.order = now, now.date(), order
        self._lead = {"at", "@"} | ({"for"} if "alarm" in tokens.words else set())
        self._habits = {_HABITS[word] for word in tokens.words if word in _HABITS}

    def read(self, at: int, *, is_time: bool = False) -> Reading | None:
        """Read a date, a time, or both in either order. A bare number is a time if `is_time` or a word says so."""
        day = self._read_day(at)
        if day is not None:
            return self._add_clock(day) if day.kind == "date" else day
        clock = self._read_clock(at, is_time=is_time)
        return clock and self._add_day(clock)

    def read_range(self, first: Reading) -> Reading | None:
        """Read the second end of a range behind its first one, and give each what only the other says."""
        words = self.words
        before = self._before(first.start - (self._before(first.start) == "the"))
        if words[first.end] not in _TO and not (words[first.end] == "and" and before == "between"):
            return None
        place = self._skip_the(first.end + 1)
        last = self.read(place, is_time=first.clock is not None) or read_amount(self.tokens, place)
        found = last and self._merge(first, last, is_told=before in ("from", "between"))
        return self._add_day(found) if found and found.ends and found.ends[0].kind == "time" else found

    def read_hours(self, day: Reading) -> Reading | None:
        """Read the times behind a day: Friday from 3 to 5."""
        at = day.end + (self.words[day.end] == ",")
        first = self._read_clock(at + 1, is_time=True) if self.words[at] in ("from", "between") else None
        hours = first and self.read_range(first)
        if not hours or not hours.ends or hours.ends[0].kind != "time":
            return None
        return self._join(day, hours, day.start, hours.end)

    def read_moved(self, count: Reading) -> Reading | None:
        """Read two days ago, an hour from now, a week from Friday, two days after Christmas."""
        words, end = self.words, count.end
        if words[end] in ("ago", "hence"):
            return self._move(count.start, end + 1, count, -1 if words[end] == "ago" else 1)
        if words[end] == "from" and words[end + 1] in ("now", "today"):
            return self._move(count.start, end + 2, count, 1)
        # for 2 weeks from Friday
        is_length = count.is_small or count.unit == "night" or self._before(count.start) == "for"
        is_moved = words[end] in ("from", "after", "before") and not is_length
        base = self._read_day(self._skip_the(end + 1)) if is_moved else None
        if base is None or base.day is None:
            return None
        day = add(base.day, count, -1 if words[end] == "before" else 1)
        return _day(count.start, base.end, day, min(0.95, base.certainty))

    def finish(self, reading: Reading) -> Reading:
        """Return a reading with its value."""
        if reading.ends is not None:
            first, last = (self.finish(one) for one in reading.ends)
            certainty = min(reading.certainty, first.certainty, last.certainty)
            return replace(reading, value=(first.value, last.value), certainty=certainty, ends=(first, last))
        if reading.clock is None:
            return reading if reading.day is None else replace(reading, value=reading.day)
        settled = self._settle(reading)
        day, clock = settled.day, settled.clock
        assert clock is not None
        whole = day and datetime.combine(day, clock.replace(tzinfo=None), clock.tzinfo or self.now.tzinfo)
        return replace(settled, value=whole or clock, unit="")

    # Dates with times

    def _add_clock(self, day: Reading) -> Reading:
        self._take_part(day)
        words, place = self.words, day.end
        place += words[place] == "," and words[place + 1] in _JOINTS
        joint = words[place] if words[place] in _JOINTS else ""
        clock = self._read_clock(place + (joint != ""), is_time=joint in _BEFORE_TIME)
        if clock is None or (joint == "by" and clock.is_open):
            return day
        self._take_part(clock)
        return self._join(day, clock, day.start, clock.end)

    def _add_day(self, clock: Reading) -> Reading:
        self._take_part(clock)
        words, place = self.words, clock.end
        place += words[place] == ","
        day = self._read_day(self._skip_the(place + (words[place] in ("on", "of"))))
        if day is None or day.kind != "date" or self._lists_days(day):
            return clock
        self._take_part(day)
        return self._join(day, clock, clock.start, day.end)

    def _lists_days(self, day: Reading) -> bool:
        """Return True for mon, wed and fri: what they share is not a part of the first one."""
        words, place = self.words, day.end + (self.words[day.end] in (",", "and", "&"))
        return day.how == "weekday" and place > day.end and words[place + (words[place] == "and")] in _WEEKDAYS

    def _join(self, day: Reading, clock: Reading, start: int, end: int) -> Reading:
        whole = replace(clock, start=start, end=end, certainty=min(day.certainty, clock.certainty))
        unit = clock.unit or day.unit
        parts = [replace(one, kind="datetime", day=day.day, unit=unit) for one in clock.ends or (whole,)]
        return replace(whole, ends=(parts[0], parts[1])) if clock.ends else parts[0]

    def _take_part(self, reading: Reading) -> None:
        """Add the part of the day behind a date or a time: tomorrow morning, seven in the evening."""
        words, place = self.words, reading.end
        place += 2 if words[place : place + 2] == ["in", "the"] else words[place : place + 2] == ["at", "night"]
        if words[place] in _PARTS:
            reading.unit, reading.end = words[place], place + 1

    def _skip_the(self, at: int) -> int:
        return at + (self.words[at] == "the")

    def _before(self, at: int) -> str:
        return self.words[at - 1] if at else ""

    def _closes(self, at: int) -> bool:
        """Return True if the word here is not one that a number before it counts."""
        word = self.words[at]
        return word in _CLOSING or word in _DAYS or word in _WEEKDAYS or not word[:1].isalnum()

    # Times of day

    def _read_clock(self, at: int, *, is_time: bool = False) -> Reading | None:
        words = self.words
        if words[at] in _HOURS:
            return Reading("time", at, at + 1, clock=_HOURS[words[at]], certainty=0.95)
        is_time = is_time or self._before(at) in self._lead
        return self._read_past(at, is_time=is_time) or self._read_hour(at, is_time=is_time)

    def _read_past(self, at: int, *, is_time: bool) -> Reading | None:
        """Read half past six, quarter to seven, ten past five."""
        words, place = self.words, at + (self.words[at] == "a")
        minutes = {"half": 30, "quarter": 15}.get(words[place], 0)
        if not minutes:
            found = read_number(self.tokens, place)
            if found is None or found.unit or found.value not in (5, 10, 15, 20, 25):
                return None
            minutes, place = int(found.value), found.end - 1
        place += 1 + (words[place + 1] in ("minutes", "minute", "mins", "min"))
        if words[place] not in ("past", "to") or (words[place] == "to" and minutes == 30):
            return None
        hour = self._read_hour(place + 1, is_time=True)
        if hour is None or hour.clock is None or hour.clock.minute:
            return None
        is_bare = words[place] == "to" and place == at + 1 and words[at] != "quarter"
        if is_bare and (not is_time or self._before(at) in ("from", "between")):
            return None  # five to ten guests, from 5 to 6 pm
        total = hour.clock.hour * 60 + (minutes if words[place] == "past" else -minutes)
        return replace(hour, start=at, clock=time(total // 60 % 24, total % 60))

    def _read_hour(self, at: int, *, is_time: bool) -> Reading | None:
        figures = self._read_figures(at)
        if figures is None:
            return None
        (hour, minute, end, is_exact), second = figures, 0
        if hour > 23 or minute > 59:
            return None
        if is_exact and self.words[end] == ":" and self.tokens.joins(end + 1) and self.words[end + 1].isdecimal():
            second, end = int(self.words[end + 1]), end + 2
        words, half = self.words, self.words[end].replace(".", "")
        is_said = half in ("am", "pm") and 0 < hour <= 12
        if is_said:
            hour, end = hour % 12 + (12 if half == "pm" else 0), end + 1
        elif words[end] == "o'clock":
            end += 1
        elif not is_exact and not self._is_time(at, end, is_time=is_time):
            return None
        zone = UTC if words[end] in ("utc", "gmt") else None
        is_full = words[at][0] == "0" or hour > 12 or hour == 0
        certainty = 0.98 if is_said or (is_exact and is_full) else 0.9
        clock = time(hour, minute, second, tzinfo=zone)
        is_open = not is_said and not is_full
        return Reading("time", at, end + (zone is not None), None, certainty, clock=clock, is_open=is_open)

    def _is_time(self, at: int, end: int, *, is_time: bool) -> bool:
        words, behind = self.words, self.words[end : end + 2]
        is_part = behind == ["at", "night"] or (behind == ["in", "the"] and words[end + 2] in _PARTS)
        if words[end] == "tonight" or is_part:
            return words[at].isalnum()
        is_hyphen = words[end] == "-" and self.tokens.joins(end) and not words[end + 1][:1].isdecimal()  # 5-star
        return is_time and self._closes(end) and not is_hyphen

    def _read_figures(self, at: int) -> tuple[int, int, int, bool] | None:
        """Return hour, minute, the place behind, and whether the form alone says that it is a time."""
        words, joins, word = self.words, self.tokens.joins, self.words[at]
        if word.isdecimal() and len(word) <= 2:
            minute = words[at + 2]
            if words[at + 1] == ":" and joins(at + 1) and joins(at + 2) and len(minute) == 2 and minute.isdecimal():
                return int(word), int(minute), at + 3, True
            return int(word), 0, at + 1, False
        if pointed := re.fullmatch(r"(\d\d?)\.(\d\d)", word):
            return int(pointed[1]), int(pointed[2]), at + 1, False
        if not 0 < CARDINALS.get(word, 0) <= 12:
            return None
        found = read_number(self.tokens, at + 1) if CARDINALS.get(words[at + 1], 0) >= 10 else None
        if found is not None and not found.unit and found.value < 60:
            return CARDINALS[word], int(found.value), found.end, False
        return CARDINALS[word], 0, at + 1, False

    # Days

    def _read_day(self, at: int) -> Reading | None:
        word = self.words[at]
        said = " ".join(self.words[at : at + 3]) if word == "day" else word
        if said in _DAYS:
            day = _day(at, at + 1 + said.count(" "), self.today + timedelta(_DAYS[said]))
            return replace(day, unit="evening" if word == "tonight" else "")
        if word[:1].isdecimal() or word in ORDINALS or word in ("twenty", "thirty"):
            return self._read_figured(at) or self._read_numbered(at)
        reader = _READERS.get(word)
        return reader and reader(self, at)

    def _read_holiday(self, at: int) -> Reading | None:
        found = next((count for count in (3, 2, 1) if tuple(self.words[at : at + count]) in _HOLIDAYS), 0)
        return self._date(at, at + found, *_HOLIDAYS[tuple(self.words[at : at + found])]) if found else None

    def _read_weekday(self, at: int) -> Reading | None:
        words, wanted = self.words, _WEEKDAYS[self.words[at]]
        end = self._skip_point(at)
        is_told = self._before(at) in _BEFORE_DAY or words[end] in ("at", ",", "-", "–") or words[end] in _MONTHS
        if words[at] in _HOMONYMS and not is_told:
            return None
        place = self._skip_the(end + (words[end] == ","))
        same = self._read_month(place) if words[place] in _MONTHS else None
        if words[place][:1].isdecimal():
            same = self._read_figured(place) or self._read_numbered(place)
        if same is not None and same.day is not None:
            return replace(same, start=at, certainty=same.certainty if same.day.weekday() == wanted else 0.5)
        place = end + (words[end] == "of")
        if words[place] in _TURNS and words[place + 1] == "week":
            return _day(at, place + 2, self._period("week", _TURNS[words[place]])[0] + timedelta(wanted))
        ahead = (wanted - self.today.weekday()) % 7
        if self._before(at) == "since":
            return _day(at, end, self.today - timedelta(7 - ahead), 0.9)
        return _day(at, end, self.today + timedelta(ahead), 0.95 if ahead else 0.7, "weekday")

    def _read_turn(self, at: int) -> Reading | None:
        """Read this, next and last with a weekday, a period, a part of the day, or a count of units."""
        turn, word = _TURNS[self.words[at]], self.words[at + 1]
        if word in _WEEKDAYS:
            ahead = (_WEEKDAYS[word] - self.today.weekday()) % 7
            if turn < 0:
                return _day(at, at + 2, self.today - timedelta(7 - ahead), 0.9)
            # Within the same week people differ.
            is_doubtful = turn > 0 and 0 < ahead < 7 - self.today.weekday()
            days = ahead or (7 if turn else 0)
            return _day(at, at + 2, self.today + timedelta(days), 0.8 if is_doubtful else 0.9)
        if word in _PARTS and turn <= 0:
            return replace(_day(at, at + 2, self.today + timedelta(turn), 0.95), unit=word)
        if word in _MONTHS:
            is_later = _MONTHS[word] >= self.today.month + (turn > 0)
            year = self.today.year + (-is_later if turn < 0 else not is_later)
            return _month(at, at + 2, year, _MONTHS[word], 0.7)
        if (word in ("week", "weekend") or word in CALENDAR) and self.words[at + 2] != "of":
            place = at + 2 + (self.words[at + 2] == "on")
            if word == "week" and self.words[place] in _WEEKDAYS:
                return _day(at, place + 1, self._period("week", turn)[0] + timedelta(_WEEKDAYS[self.words[place]]))
            return _period(at, at + 2, self._period(word, turn), 0.7, word)
        count = read_amount(self.tokens, at + 1) if turn else None
        if count is None or count.kind != "duration":
            return None
        start = self.now.replace(microsecond=0) if count.is_small else self.today
        ends = sorted((start, add(start, count, turn)))
        return _period(at, count.end, (ends[0], ends[1]), 0.8, count.unit)

    def _period(self, period: str, turn: int) -> tuple[date, date]:
        """Return the first and the last day of this, the next or the last week, weekend, month, quarter or year."""
        if period not in CALENDAR:
            first = self.today + timedelta(7 * turn - self.today.weekday() + (5 if period == "weekend" else 0))
            return first, first + timedelta(1 if period == "weekend" else 6)
        months = CALENDAR[period]
        whole = ((self.today.year * 12 + self.today.month - 1) // months + turn) * months
        end = whole + months - 1
        return date(whole // 12, whole % 12 + 1, 1), _last_day(end // 12, end % 12 + 1)

    def _read_place(self, at: int) -> Reading | None:
        """Read end of the month, beginning of next week, mid May."""
        words = self.words
        if words[at] != "mid" and words[at + 1] != "of":
            return None
        place = self._skip_the(at + 1 + (words[at + 1] in ("of", "-")))
        if words[place] in ("week", *CALENDAR) and words[place - 1] == "the":
            (first, last), end = self._period(words[place], 0), place + 1
        else:
            inside = self._read_period(place)
            if inside is None or isinstance(inside.value[0], datetime):
                return None
            (first, last), end = inside.value, inside.end
        day = (first, first + (last - first) // 2, last)[_PLACES[words[at]]]
        return _day(at, end, day, 0.7)

    def _read_period(self, at: int) -> Reading | None:
        """Read a month, this week, next month; not what contains such a period."""
        found = self._read_month(at) if self.words[at] in _MONTHS else None
        found = self._read_turn(at) if self.words[at] in _TURNS else found
        return found if found is not None and found.kind == "range" else None

    def _read_month(self, at: int) -> Reading | None:
        """Read May 3, May 3rd 2027, May 2027, in May."""
        words, month, end = self.words, _MONTHS[self.words[at]], self._skip_point(at)
        place = self._skip_the(end + (words[end] in ("-", "/") and self.tokens.joins(end + 1)))
        named = words[place].isdecimal() or words[place] in CARDINALS or words[place] in ORDINALS
        found = read_number(self.tokens, place) if named or words[place][:1].isdecimal() else None
        if found is not None and (found.unit or named) and found.value <= 31 and words[found.end] not in _COUNTED:
            return self._date(at, found.end, month, int(found.value))
        if year := self._read_year(end):
            return _month(at, end + 1 + (words[end] in (",", "of")), year, month, 0.9)
        is_told = self._before(at) in _BEFORE_MONTH
        if not is_told and (words[at] in _HOMONYMS or not self.tokens.text[self.tokens.starts[at]].isupper()):
            return None
        return _month(at, end, self.today.year + (month < self.today.month), month, 0.7 if is_told else 0.4)

    def _skip_point(self, at: int) -> int:
        """Return the place behind a word that may be abbreviated."""
        is_point = self.words[at + 1] == "." and len(self.words[at]) < 5 and self.tokens.joins(at + 1)
        return at + 1 + (is_point and self.words[at + 2] != "")

    def _read_year(self, at: int) -> int:
        at += self.words[at] in (",", "of")
        word, is_whole = self.words[at], not self.tokens.joins(at + 1) or self.words[at + 1] in ",.;:?!)"
        return int(word) if is_whole and len(word) == 4 and word.isdecimal() and 1900 <= int(word) < 2200 else 0

    def _date(self, start: int, end: int, month: int, day: int) -> Reading | None:
        """Return a date whose year may follow; else it is the next such day, today included."""
        if year := self._read_year(end):
            return _day(start, end + 1 + (self.words[end] in (",", "of")), date(year, month, day), how="year")
        for year in range(self.today.year, self.today.year + 9):  # 29 February may be years ahead
            if 1 <= day <= month_length(year, month) and date(year, month, day) >= self.today:
                return _day(start, end, date(year, month, day), 0.95, "month")
        return None

    def _read_numbered(self, at: int) -> Reading | None:
        """Read 3rd of May, 3 May 2027, the 9th, first Monday of May."""
        words, found = self.words, read_number(self.tokens, at)
        if found is None or not 1 <= found.value <= 31 or (found.how == "word" and not found.unit):
            return None
        end, number = found.end, int(found.value)
        if found.unit and words[end] in _WEEKDAYS and words[end + 1] in ("of", "in"):
            inside = self._read_period(self._skip_the(end + 2))
            if inside is None or inside.unit != "month":
                return None
            day = inside.value[0] + timedelta((_WEEKDAYS[words[end]] - inside.value[0].weekday()) % 7 + 7 * number - 7)
            return _day(at, inside.end, day, 0.9) if day <= inside.value[1] else None
        place = self._skip_the(end + (words[end] in ("of", "-")))
        if words[place] in _MONTHS:
            return self._date(at, self._skip_point(place), _MONTHS[words[place]], number)
        if words[place] in _TURNS and words[place + 1] == "month":
            return _day(at, place + 2, self._period("month", _TURNS[words[place]])[0].replace(day=number))
        if found.unit and not found.how and self._before(at) in ("the", "on", "by") and self._closes(end):
            day = self.today.replace(day=1)
            while number > month_length(day.year, day.month) or day.replace(day=number) < self.today:
                day = _last_day(day.year, day.month) + timedelta(1)
            return _day(at, end, day.replace(day=number), 0.8, "day")
        return None

    def _read_figured(self, at: int) -> Reading | None:
        """Read 2027-05-03, 2027-05-03T19:00Z, 3/5/2027, 3.5.2027, 3/5."""
        text, starts = self.tokens.text, self.tokens.starts
        found = _STAMP.match(text, starts[at]) or _FIGURES.match(text, starts[at])
        if found is None:
            return None
        end = bisect_left(starts, found.end())
        if found.re is _STAMP:
            moment = datetime.fromisoformat(found[0])
            return Reading("datetime", at, end, day=moment.date(), clock=moment.timetz())
        if found["y"]:
            return _day(at, end, date(int(found["y"]), int(found["m"]), int(found["d"])), how="year")
        year, first, second = found["c"], int(found["a"]), int(found["b"])
        if (found["s"] != "/" and len(year or "") != 4) or found[0] == "24/7":
            return None  # a number, a version, a range, or always
        # Dates with points name the day first, unless the order is known.
        is_sure, order = max(first, second) > 12 or first == second, self.order or ("DMY" if found["s"] == "." else "")
        month, day = (second, first) if first > 12 or (order == "DMY" and second <= 12) else (first, second)
        certainty = 0.95 if is_sure else 0.9 if order else 0.5
        if year:
            century = 0 if len(year) == 4 else 2000 if int(year) < 70 else 1900
            return _day(at, end, date(century + int(year), month, day), certainty, "year")
        near = self._date(at, end, month, day)
        return near and replace(near, certainty=certainty * (1 if self._before(at) in _BEFORE_DATE else 0.8))

    def _read_in(self, at: int) -> Reading | None:
        """Read in two hours."""
        count = read_amount(self.tokens, at + 1 + (self.words[at + 1] in ("about", "around", "exactly")))
        return self._move(at, count.end, count, 1) if count is not None and count.kind == "duration" else None

    def _move(self, start: int, end: int, count: Reading, sign: int) -> Reading:
        certainty = max(count.certainty, 0.9)
        if not count.is_small:
            return _day(start, end, add(self.today, count, sign), certainty)
        moment = add(self.now.replace(microsecond=0), count, sign)
        return Reading("datetime", start, end, None, certainty, day=moment.date(), clock=moment.timetz())

    # Both ends of a range

    def _merge(self, first: Reading, last: Reading, *, is_told: bool) -> Reading | None:
        first, last = self._lend(first, last)
        if first.kind != last.kind or first.kind == "range":
            return None
        if first.clock is not None:
            return self._merge_clocks(first, last)
        if first.day is not None and last.day is not None:
            last = replace(last, day=_following(first.day, last.day, last.how))
            return _range(first, last) if last.day and first.day <= last.day else None
        if first.unit != last.unit or first.unit == "ordinal":
            return None
        opens, closes = _clock_of(first), _clock_of(last)
        day = self._read_day(self._skip_the(last.end + (self.words[last.end] in ("on", ","))))
        if is_told and opens and closes and (first.value > last.value or (day and day.kind == "date")):
            hours = self._merge_clocks(opens, closes)
            return hours and replace(hours, certainty=0.6)
        return _range(first, last) if first.value <= last.value else None

    def _lend(self, first: Reading, last: Reading) -> tuple[Reading, Reading]:
        """Give an end what only the other one says: 3 to 5 pm, 3rd to 5th of May, May 3 to 5, 2-3 hours."""
        if first.kind == "number" and last.clock is not None:
            first = _clock_of(first) or first
        elif last.kind == "date" and (first.kind == "number" or first.how == "day" != last.how):
            first = _in_month(first, last) if last.how != "weekday" else first
        elif last.kind == "number" and first.kind == "date" and first.how in ("month", "year", "day"):
            last = _in_month(last, first) if self._closes(last.end) else last
        elif first.kind == "number":
            first = _like(first, last)
        elif last.kind == "number" and first.kind == "money":
            last = _like(last, first)
        if first.clock is not None and last.clock is not None and first.kind != last.kind:
            day = first.day or last.day
            return replace(first, kind="datetime", day=day), replace(last, kind="datetime", day=day)
        return first, last

    def _merge_clocks(self, first: Reading, last: Reading) -> Reading | None:
        """Decide both times together: 11 to 2 pm begins in the morning, 3 to 5 pm does not."""
        first, last = (self._settle(one) if one.unit else one for one in (first, last))
        if first.is_open and last.is_open:
            first = self._settle(replace(first, unit=first.unit or last.unit))
            last = replace(last, certainty=min(first.certainty, last.certainty))
        start, end = first.clock, last.clock
        assert start is not None
        assert end is not None
        zone = start.tzinfo or end.tzinfo
        start, end = start.replace(tzinfo=zone), end.replace(tzinfo=zone)
        if first.is_open:
            start = _turn(start, is_late=_turn(start, is_late=True) < end)
        elif last.is_open:
            end = _turn(end, is_late=_turn(end, is_late=False) <= start < _turn(end, is_late=True))
        first, last = replace(first, clock=start, is_open=False), replace(last, clock=end, is_open=False)
        if first.day and last.day and (last.day, end) < (first.day, start):
            if first.day != last.day:
                return None
            last = replace(last, day=first.day + timedelta(1))
        return _range(first, last)

    def _settle(self, reading: Reading) -> Reading:
        """Decide between morning and evening: by the part of the day, the words of the text, the clock, or custom."""
        clock, habits = reading.clock, self._habits
        if not reading.is_open or clock is None:
            return reading
        hour, late = clock.hour, _turn(clock, is_late=True)
        is_past = reading.day == self.today and clock <= self.now.time() < late if clock.tzinfo is None else False
        if reading.unit:
            is_late, certainty = reading.unit != "morning" and (reading.unit != "night" or 5 <= hour < 12), 0.95
        elif hour == 12:
            is_late, certainty = True, 0.8
        elif habits == {"midday"}:
            is_late, certainty = hour < 10, 0.85
        elif ("morning" in habits) != ("evening" in habits):
            is_late, certainty = "evening" in habits, 0.85
        elif is_past:
            is_late, certainty = True, 0.75
        else:
            is_late, certainty = hour < 8, 0.5 if hour == 7 else 0.6 if hour > 7 else 0.7
        clock = late if is_late else _turn(clock, is_late=False)
        return replace(reading, clock=clock, certainty=min(reading.certainty, certainty), is_open=False)


def _turn(clock: time, *, is_late: bool) -> time:
    return clock.replace(hour=clock.hour % 12 + (12 if is_late else 0))


def _last_day(year: int, month: int) -> date:
    return date(year, month, month_length(year, month))


def _day(start: int, end: int, day: date, certainty: float = 1.0, how: str = "") -> Reading:
    return Reading("date", start, end, None, certainty, day=day, how=how)


def _period(start: int, end: int, days: tuple[date, date], certainty: float, unit: str) -> Reading:
    return Reading("range", start, end, days, certainty, unit)


def _month(start: int, end: int, year: int, month: int, certainty: float) -> Reading:
    return _period(start, end, (date(year, month, 1), _last_day(year, month)), certainty, "month")


def _range(first: Reading, last: Reading) -> Reading:
    unit = "" if first.value is None else first.unit
    return Reading("range", first.start, last.end, None, min(first.certainty, last.certainty), unit, ends=(first, last))


def _clock_of(number: Reading) -> Reading | None:
    if number.kind != "number" or number.unit or not isinstance(number.value, int) or not 0 < number.value < 24:
        return None
    clock = time(number.value)
    return Reading("time", number.start, number.end, None, 0.9, clock=clock, is_open=number.value <= 12)


def _in_month(number: Reading, other: Reading) -> Reading:
    """Return a number as a day in the month of another date."""
    day, value = other.day, number.day.day if number.day else number.value
    if day is None or not isinstance(value, int) or not 1 <= value <= month_length(day.year, day.month):
        return number
    return _day(number.start, number.end, day.replace(day=value), other.certainty, other.how)


def _like(number: Reading, other: Reading) -> Reading:
    """Return a number in the unit of another amount."""
    value = number.value
    if other.kind == "money":
        value = type(other.value)(str(value))
    elif other.kind == "duration":
        value = timedelta(seconds=float(SECONDS[other.unit]) * value)
    return replace(number, kind=other.kind, unit=other.unit, value=value)


def _following(first: date, last: date, how: str) -> date:
    """Return the end of a range in the next week, month or year if it would be before the first day."""
    if last >= first or how not in ("weekday", "day", "month"):
        return last
    if how == "weekday":
        return first + timedelta((last - first).days % 7)
    return add(last, Reading("duration", 0, 0, months=1 if how == "day" else 12), 1)


_READERS: Final[dict[str, Callable[[Times, int], Reading | None]]] = {
    **dict.fromkeys(_WEEKDAYS, Times._read_weekday),
    **dict.fromkeys(_MONTHS, Times._read_month),
    **dict.fromkeys(_TURNS, Times._read_turn),
    **dict.fromkeys(_PLACES, Times._read_place),
    **dict.fromkeys((name[0] for name in _HOLIDAYS), Times._read_holiday),
    "weekend": lambda times, at: _period(at, at + 1, times._period("weekend", 0), 0.7, "weekend"),
    "in": Times._read_in,
}
STARTS: Final = frozenset((*_READERS, *_DAYS, *_HOURS, *ORDINALS, "day", "half", "quarter"))
