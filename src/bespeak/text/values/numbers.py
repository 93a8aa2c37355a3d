"""Numbers in English: digits and words, and the money, percentages, quantities and durations that they count."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar

from bespeak.text.language.sentence import listed, names, word_pairs, word_set

_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*|[apAP]\.[mM]\b\.?|°[CFcf]\b|[^\W\d_]+(?:['’][^\W\d_]+)?|\S")
_BEHIND: Final = 12  # empty words behind the last one, so that a look ahead needs no test
_MOST_DIGITS: Final = 24
_MOST_WORDS: Final = 16  # words of one number
_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
CARDINALS: Final = {word: number for number, word in enumerate(_SMALL.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_IRREGULAR: Final = word_pairs("one=first two=second three=third five=fifth eight=eighth nine=ninth twelve=twelfth")
ORDINALS: Final = {
    _IRREGULAR.get(word) or (f"{word[:-1]}ieth" if word[-1] == "y" else f"{word}th"): number
    for word, number in CARDINALS.items()
    if number
}
_SCALES: Final = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
_SHORT_SCALES: Final = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9}
_PARTS: Final = {"½": Decimal("0.5"), "¼": Decimal("0.25"), "¾": Decimal("0.75")}
_DECADES: Final = (*range(20, 100, 10), *range(1900, 2100, 10))
_VAGUE: Final = {"couple": (2, 0.8), "pair": (2, 0.8), "few": (3, 0.3)}
SHARED_SIGNS: Final = frozenset({"$", "£", "¥", "kr"})  # signs of several currencies; only a region decides
_CURRENCIES: Final = names("currencies")
_CODES: Final = listed("currency-codes")
_CENTS: Final = {"cent": "USD", "cents": "USD", "pence": "GBP"}
_UNITS: Final = names("units")
TIME_UNITS: Final = names("time-units")
_DAYS: Final = {"day": 1, "night": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}
SECONDS: Final[Mapping[str, Decimal]] = {
    unit: Decimal(seconds)
    for unit, seconds in (("millisecond", "0.001"), ("second", 1), ("minute", 60), ("hour", 3600))
} | {unit: Decimal(86_400 * days) for unit, days in _DAYS.items()}
CALENDAR: Final = {"month": 1, "quarter": 3, "year": 12}  # units whose length depends on the date, in months
_BEFORE_ONE: Final = word_set("for in within after takes take about last lasts than only just another over")
_BEHIND_ONE: Final = word_set("ago from and later long before after")
_NOT_ONE: Final = word_set("this that the which each another any no every")
_HALF: Final = ["and", "a", "half"]
_Moment = TypeVar("_Moment", date, datetime)


class Tokens:
    """Words of a text in lower case with their places. Behind the last one there are empty words."""

    __slots__ = ("count", "ends", "starts", "text", "words")

    def __init__(self, text: str, hidden: Iterable[tuple[int, int]] = ()) -> None:
        """Read a text. Words in `hidden` places are replaced by a mark that no rule knows."""
        found = list(_TOKEN.finditer(text))
        self.text, self.count = text, len(found)
        self.starts = [one.start() for one in found]
        self.ends = [one.end() for one in found]
        self.words = [one[0].lower().replace("’", "'") for one in found] + [""] * _BEHIND
        places = sorted(hidden, reverse=True)
        for number, start in enumerate(self.starts if places else ()):
            while places and places[-1][1] <= start:
                places.pop()
            if places and places[-1][0] <= start:
                self.words[number] = "\0"

    def code(self, place: int) -> str:
        """Return the currency that a sign, a word or a code in capitals names, else an empty text."""
        said = self.text[self.starts[place] : self.ends[place]] if place < self.count else ""
        return said if said in _CODES else _CURRENCIES.get(said.lower(), "")

    def joins(self, place: int) -> bool:
        """Return True if nothing is between a word and the one before it."""
        return 0 < place < self.count and self.starts[place] == self.ends[place - 1]


@dataclass(slots=True)
class Reading:
    """A meaning of some words, from `start` to `end`. The parts of a moment are decided when everything is read.

    `is_open` says that morning or evening is not named, `how` which part of a date is, `months` and `is_small` how a
    duration is added, `ends` what a range is made of.
    """

    kind: str
    start: int
    end: int
    value: Any = None
    certainty: float = 1.0
    unit: str = ""
    day: date | None = None
    clock: time | None = None
    is_open: bool = False
    how: str = ""
    months: int = 0
    is_small: bool = False
    ends: tuple[Reading, Reading] | None = None


def read_number(tokens: Tokens, at: int) -> Reading | None:
    """Read a number at a word: 1,234.5, twenty-one hundred, a dozen, 21st, two and a half, 1.5k, -3."""
    words = tokens.words
    is_negative = words[at] == "minus" or (words[at] in ("-", "−") and tokens.joins(at + 1) and not tokens.joins(at))
    first = at + is_negative
    found = _read_figures(tokens, first) if words[first][:1].isdecimal() else _read_words(words, first)
    if found is None or found.unit == "ordinal":
        return None if is_negative else found
    if words[found.end : found.end + 3] == _HALF:
        found.value, found.end = found.value + _PARTS["½"], found.end + 3
    if is_negative:
        found.start, found.value = at, -found.value
    return found


def _read_figures(tokens: Tokens, at: int) -> Reading | None:
    words, end = tokens.words, at + 1
    read = read_digits(words[at])
    if read is None:
        return None
    value, certainty = read
    behind = words[end] if tokens.joins(end) else ""
    if behind == "s" and value in _DECADES and (words[at - 1] == "the" or words[end + 1].isalpha()):
        return None  # 80s music
    if behind in ("st", "nd", "rd", "th") and isinstance(value, int):
        return Reading("number", at, end + 1, value, 0.7, "ordinal")
    if behind in _PARTS or behind in _SHORT_SCALES:
        value = value + _PARTS[behind] if behind in _PARTS else value * _SHORT_SCALES[behind]
        return Reading("number", at, end + 1, shorten(value), 0.5 if behind == "m" else certainty)  # may be metres
    while words[end] in _SCALES and end < at + 4:
        value, end = value * _SCALES[words[end]], end + 1
    return Reading("number", at, end, shorten(value), certainty)


def read_digits(word: str) -> tuple[int | Decimal, float] | None:
    """Read digits with separators as English writes them, else as other languages do, with less certainty."""
    if len(word) > _MOST_DIGITS:
        return None
    if word.isdecimal():
        return int(word), 1.0
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", word):
        return Decimal(word.replace(",", "")), 0.9
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", word):
        return Decimal(word.replace(".", "").replace(",", ".")), 0.8
    return (
        (Decimal(word.replace(",", ".")), 0.6 if "," in word else 1.0) if len(re.findall("[.,]", word)) == 1 else None
    )


def shorten(value: int | Decimal) -> int | Decimal:
    """Return a whole number as an int."""
    return int(value) if value == int(value) else value


def _read_words(words: list[str], at: int) -> Reading | None:
    word, behind = words[at], words[at + 1]
    if word == "a" and behind in _VAGUE:
        return Reading("number", at, at + 2 + (words[at + 2] == "of"), *_VAGUE[behind])
    if word == "half" and behind == "a" and words[at + 2] in _SCALES:
        return Reading("number", at, at + 3, _SCALES[words[at + 2]] // 2)
    if word in ("a", "an"):
        return _sum_words(words, at, at + 1, 1) if behind in _SCALES else None
    if word in _PARTS:
        return Reading("number", at, at + 1, _PARTS[word])
    return _sum_words(words, at, at, 0) if word in CARDINALS or word in ORDINALS else None


def _sum_words(words: list[str], start: int, at: int, current: int) -> Reading:
    total, place = 0, at
    while place < at + _MOST_WORDS:
        word = words[place]
        scale, small = _SCALES.get(word), CARDINALS.get(word, ORDINALS.get(word))
        if scale is not None and (current or total):
            total, current = (total, current * scale) if scale <= 100 else (total + current * scale, 0)
        elif small is not None and (place == at or _fits(current or total, small)):
            current += small
            if word in ORDINALS:
                return Reading("number", start, place + 1, total + current, 0.4, "ordinal", how="word")
        elif not _links(words, place, current):
            break
        place += 1
    return Reading("number", start, place, total + current, how="word")


def _fits(current: int, small: int) -> bool:
    """Return True if a word may follow: five after twenty, twenty after three hundred."""
    rest = current % 100
    return small > 0 and current > 0 and (rest == 0 or (rest >= 20 and rest % 10 == 0 and small < 10))


def _links(words: list[str], place: int, current: int) -> bool:
    """Return True for the sign in twenty-one, and for `and` behind a hundred or more."""
    small = CARDINALS.get(words[place + 1], ORDINALS.get(words[place + 1], 0))
    if words[place] == "and":
        return bool(small) and words[place - 1] in _SCALES
    return words[place] == "-" and current % 100 != 0 and _fits(current, small)


def read_amount(tokens: Tokens, at: int) -> Reading | None:
    """Read a number with what it counts: money, percent, quantity or duration; else the number alone."""
    words = tokens.words
    if code := tokens.code(at):
        found = read_number(tokens, at + 1) if tokens.joins(at + 1) or words[at].isalpha() else None
        if found is None or found.unit or found.kind != "number":
            return None
        certainty = 0.9 if words[at] in SHARED_SIGNS else 1.0
        # 1,200 dollars have no other meaning, and $5m are millions.
        return Reading(
            "money", at, found.end, Decimal(found.value), certainty if words[at + 1].isascii() else 0.8, code
        )
    one = _read_one(words, at)
    found = one or read_number(tokens, at)
    if found is None or found.unit == "ordinal" or _count(tokens, found):
        return found
    if one is not None:
        return None
    found.value = found.value if isinstance(found.value, int) else float(found.value)
    if words[at] == "one" and found.end == at + 1 and (words[at - 1] in _NOT_ONE or not words[at + 1].isalpha()):
        found.certainty = 0.3  # a pronoun
    return found


def _read_one(words: list[str], at: int) -> Reading | None:
    """Read `an hour` and `half an hour`, where an article counts."""
    if words[at] == "half":
        place = at + 1 + (words[at + 1] in ("a", "an"))
        is_unit = TIME_UNITS.get(words[place], "second") != "second"
        return Reading("number", at, place, _PARTS["½"]) if is_unit else None
    unit = words[at + 1]
    if words[at] in ("a", "an") and unit in TIME_UNITS and len(unit) > 2 and unit not in ("second", "quarter"):
        is_told = (at > 0 and words[at - 1] in _BEFORE_ONE) or words[at + 2] in _BEHIND_ONE
        return Reading("number", at, at + 1, 1) if is_told else None
    return None


def _count(tokens: Tokens, number: Reading) -> bool:
    """Turn a number into an amount, if a sign, a unit or a currency follows."""
    words, end, value = tokens.words, number.end, number.value
    if words[end] == "-" and tokens.joins(end) and (words[end + 1] in TIME_UNITS or words[end + 1] in _UNITS):
        end += 1  # a 3-night stay
    word = words[end]
    if word in ("%", "percent", "pct") or (word == "per" and words[end + 1] == "cent"):
        number.kind, number.unit, number.end = "percent", "%", end + 1 + (word == "per")
    elif word in TIME_UNITS and (len(word) > 1 or tokens.joins(end)):
        _read_duration(tokens, number, end)
        return True
    elif (code := tokens.code(end)) or word in _CENTS:
        is_shared = word in SHARED_SIGNS or word.rstrip("s") in ("dollar", "franc")
        certainty = 0.6 if word in _CENTS or "pound" in word else 0.9 if is_shared else 1.0
        number.kind, number.unit, number.end = "money", code or _CENTS[word], end + 1
        number.value = Decimal(value) if code else Decimal(value) / 100
        number.certainty = min(number.certainty, certainty)
        return True
    elif word == "square" and words[end + 1] in _UNITS:
        number.kind, number.unit, number.end = "quantity", f"{_UNITS[words[end + 1]]}²", end + 2
    elif word in _UNITS:
        number.kind, number.unit, number.end = "quantity", _UNITS[word], end + 1
        if number.unit == "°" and _UNITS.get(words[end + 1], "")[:1] == "°":
            number.unit, number.end = _UNITS[words[end + 1]], end + 2
        elif number.unit == "km" and words[end + 1 : end + 3] == ["/", "h"]:
            number.unit, number.end = "km/h", end + 3
    else:
        return False
    number.value = value if isinstance(value, int) else float(value)
    return True


def _read_duration(tokens: Tokens, number: Reading, at: int) -> None:
    """Read one or more counted units, larger ones first: an hour and a half, 1 h 30 min, 2h30."""
    words, end = tokens.words, at + 1
    unit = first = TIME_UNITS[words[at]]
    count = number.value
    if words[end : end + 3] == _HALF:
        count, end = count + _PARTS["½"], end + 3
    seconds, months = SECONDS[unit] * count, count * CALENDAR.get(unit, 0)
    for _ in range(3):
        place = end + (words[end] in ("and", ","))
        more = read_number(tokens, place)
        if more is None or more.unit:
            break
        is_short = words[end - 1] == "h" and tokens.joins(place)  # 2h30
        smaller = TIME_UNITS.get(words[more.end], "minute" if is_short else "")
        if not smaller or SECONDS[smaller] >= SECONDS[unit]:
            break
        end = more.end + (words[more.end] in TIME_UNITS)
        seconds, months, unit = seconds + SECONDS[smaller] * more.value, 0, smaller
    number.kind, number.end, number.unit = "duration", end, first
    number.value = timedelta(seconds=float(seconds))
    number.months = int(months) if months == int(months) else 0
    number.is_small = SECONDS[unit] < SECONDS["day"]
    number.certainty = min(number.certainty, 0.7 if first in CALENDAR else 1.0)


def add(moment: _Moment, duration: Reading, sign: int) -> _Moment:
    """Add a duration to a date or an aware datetime; months keep the day, hours pass in real time."""
    if duration.months:
        year, month = divmod(moment.year * 12 + moment.month - 1 + sign * duration.months, 12)
        return moment.replace(year=year, month=month + 1, day=min(moment.day, month_length(year, month + 1)))
    change: timedelta = sign * duration.value
    if duration.is_small and isinstance(moment, datetime):
        return (moment.astimezone(UTC) + change).astimezone(moment.tzinfo)
    return moment + change


def month_length(year: int, month: int) -> int:
    """Return the number of days in a month."""
    return monthrange(year, month)[1]


STARTS: Final = frozenset(
    (*CARDINALS, *ORDINALS, *_PARTS, *_CURRENCIES, *map(str.lower, _CODES), *["a", "an", "half", "-", "−", "minus"])
)
