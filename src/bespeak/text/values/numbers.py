"""Numbers in English: digits and words, and the money, percentages, quantities and durations that they count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*|[apAP]\.[mM]\b\.?|[^\W\d_]+(?:['’][^\W\d_]+)?|\S")
_BEHIND: Final = 12  # empty words behind the last one, so that a look ahead needs no test
_MOST_DIGITS: Final = 24
_MOST_WORDS: Final = 16  # words of one number


def _names(*rows: str) -> dict[str, str]:
    """Return the meaning of each word of rows such as `km: km kilometer`."""
    return {name: unit for row in rows for unit, names in (row.split(":", 1),) for name in names.split()}


_UNDER_TWENTY: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
CARDINALS: Final = {word: number for number, word in enumerate(_UNDER_TWENTY.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_ROOTS: Final = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth"} | {
    "nine": "ninth",
    "twelve": "twelfth",
}
ORDINALS: Final = {
    _ROOTS.get(word) or (f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th"): number
    for word, number in CARDINALS.items()
    if number
}
_SCALES: Final = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_SHORT_SCALES: Final = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9}
_PARTS: Final = {"½": Decimal("0.5"), "¼": Decimal("0.25"), "¾": Decimal("0.75")}
_VAGUE: Final = {"couple": (2, 0.8), "few": (3, 0.3), "pair": (2, 0.8)}
ENDINGS: Final = frozenset(("st", "nd", "rd", "th"))

SIGNS: Final = dict(pair.split("=") for pair in "$=USD €=EUR £=GBP ¥=JPY ₹=INR ₩=KRW ₺=TRY ₽=RUB ₴=UAH ₪=ILS".split())
SHARED_SIGNS: Final = frozenset({"$", "£", "¥", "kr"})  # signs of several currencies; only a region decides
_CURRENCIES: Final = _names(
    "USD: dollar dollars buck bucks",
    "EUR: euro euros",
    "GBP: pound pounds quid sterling",
    "JPY: yen",
    "INR: rupee rupees",
    "CNY: yuan renminbi",
    "CHF: franc francs",
)
_CENTS: Final = _names("USD: cent cents", "GBP: pence")
_DOUBTFUL: Final = frozenset(("dollar", "dollars", "pound", "pounds", "franc", "francs", "cent", "cents"))
_CODES: Final = frozenset(
    "USD EUR GBP JPY CHF CAD AUD NZD CNY HKD SGD INR KRW SEK NOK DKK PLN CZK HUF RON BGN TRY ILS AED SAR ZAR BRL MXN ARS "
    "CLP COP PEN THB IDR MYR PHP VND TWD UAH KZT EGP NGN KES BTC ETH".split()
)
_UNITS: Final = _names(
    "km: km kms kilometer kilometers kilometre kilometres",
    "m: m meter meters metre metres",
    "cm: cm centimeter centimeters centimetre centimetres",
    "mm: mm millimeter millimeters millimetre millimetres",
    "mi: mile miles mi",
    "ft: foot feet ft",
    "in: inch inches",
    "yd: yard yards yd",
    "kg: kg kgs kilo kilos kilogram kilograms",
    "g: g gram grams gramme grammes",
    "mg: mg milligram milligrams",
    "t: ton tons tonne tonnes",
    "lb: lb lbs",
    "oz: oz ounce ounces",
    "l: l liter liters litre litres",
    "ml: ml milliliter milliliters millilitre millilitres",
    "gal: gallon gallons gal",
    "°C: celsius",
    "°F: fahrenheit",
    "°: degree degrees",
    "km/h: kmh kph",
    "mph: mph",
    "KB: kb kilobyte kilobytes",
    "MB: mb megabyte megabytes",
    "GB: gb gigabyte gigabytes gig gigs",
    "TB: tb terabyte terabytes",
    "kW: kw",
    "kWh: kwh",
    "W: watt watts",
    "V: volt volts",
    "Hz: hz hertz",
    "GHz: ghz",
    "px: px pixel pixels",
)
TIME_UNITS: Final = _names(
    "millisecond: ms millisecond milliseconds",
    "second: s sec secs second seconds",
    "minute: min mins minute minutes",
    "hour: h hr hrs hour hours",
    "day: d day days",
    "night: night nights",
    "week: wk wks week weeks",
    "fortnight: fortnight fortnights",
    "month: month months mo",
    "quarter: quarter quarters",
    "year: year years yr yrs",
)
SECONDS: Final = {"millisecond": Decimal("0.001"), "second": 1, "minute": 60, "hour": 3600} | {
    unit: days * 86_400
    for unit, days in (
        ("day", 1), ("night", 1), ("week", 7), ("fortnight", 14), ("month", 30), ("quarter", 91), ("year", 365),
    )
}  # fmt: skip
CALENDAR: Final = {"month": 1, "quarter": 3, "year": 12}  # units whose length depends on the date, in months
_BEFORE_ONE: Final = frozenset("for in within after takes take about last lasts than only just another over".split())
_BEHIND_ONE: Final = frozenset(("ago", "from", "and", "later", "long", "before", "after"))
_NOT_ONE: Final = frozenset(("this", "that", "the", "which", "each", "another", "any", "no", "every"))
_SMALL: Final = frozenset(("hour", "minute", "second", "millisecond"))


class Tokens:
    """Words of a text in lower case with their places. Behind the last one there are empty words."""

    __slots__ = ("count", "ends", "starts", "text", "words")

    def __init__(self, text: str, hidden: Iterable[tuple[int, int]] = ()) -> None:
        """Read a text. Words in `hidden` places are replaced by a mark that no rule knows."""
        found = list(_TOKEN.finditer(text))
        self.text = text
        self.starts = [one.start() for one in found]
        self.ends = [one.end() for one in found]
        self.words = [one[0].lower().replace("’", "'") for one in found] + [""] * _BEHIND
        self.count = len(found)
        places = sorted(hidden)
        at = 0
        for number, start in enumerate(self.starts if places else ()):
            while at < len(places) and places[at][1] <= start:
                at += 1
            if at < len(places) and places[at][0] <= start:
                self.words[number] = "\0"

    def said(self, place: int) -> str:
        """Return a word as it is written."""
        return self.text[self.starts[place] : self.ends[place]] if place < self.count else ""

    def joins(self, place: int) -> bool:
        """Return True if nothing is between a word and the one before it."""
        return 0 < place < self.count and self.starts[place] == self.ends[place - 1]


@dataclass(slots=True)
class Reading:
    """What words mean. `day` and `clock` are parts of a moment; `is_open` if morning or evening is not said."""

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
    ends: tuple[Reading, Reading] | None = None


class Number(NamedTuple):
    """A number in words or digits, and the place behind it."""

    value: int | Decimal
    end: int
    certainty: float = 1.0
    is_ordinal: bool = False
    is_word: bool = False


_GROUPED: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_POINTED: Final = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")


def read_digits(word: str) -> tuple[int | Decimal, float] | None:
    """Read digits with separators as English writes them, else as other languages do, with less certainty."""
    if len(word) > _MOST_DIGITS:
        return None
    if word.isdecimal():
        return int(word), 1.0
    if _GROUPED.fullmatch(word):
        return _short(Decimal(word.replace(",", ""))), 0.9
    if _POINTED.fullmatch(word):
        return _short(Decimal(word.replace(".", "").replace(",", "."))), 0.8
    if word.count(".") == 1 and "," not in word:
        return Decimal(word), 1.0
    if word.count(",") == 1 and "." not in word:
        return Decimal(word.replace(",", ".")), 0.6
    return None


def _short(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() else value


def read_number(tokens: Tokens, at: int) -> Number | None:
    """Read a number at a word: 1,234.5, twenty-one hundred, a dozen, 21st, two and a half, 1.5k, -3."""
    words = tokens.words
    word = words[at]
    if word in ("-", "−", "minus"):
        if word != "minus" and (tokens.joins(at) or not tokens.joins(at + 1)):
            return None
        found = _read_plain(tokens, at + 1)
        return None if found is None or found.is_ordinal else found._replace(value=-found.value)
    return _read_plain(tokens, at)


def _read_plain(tokens: Tokens, at: int) -> Number | None:
    word = tokens.words[at]
    found = _read_figures(tokens, at) if word[:1].isdecimal() else _read_words(tokens, at)
    if found is None or found.is_ordinal:
        return found
    words, end = tokens.words, found.end
    if words[end : end + 3] == ["and", "a", "half"]:
        return found._replace(value=found.value + _PARTS["½"], end=end + 3)
    return found


def _read_figures(tokens: Tokens, at: int) -> Number | None:
    words = tokens.words
    read = read_digits(words[at])
    if read is None:
        return None
    value, certainty = read
    end, behind = at + 1, words[at + 1]
    if tokens.joins(end):
        if behind in ENDINGS and isinstance(value, int):
            return Number(value, end + 1, certainty, is_ordinal=True)
        if behind in _PARTS:
            return Number(value + _PARTS[behind], end + 1, certainty)
        if behind in _SHORT_SCALES:
            # 5m may be metres.
            return Number(_short(Decimal(value * _SHORT_SCALES[behind])), end + 1, 0.5 if behind == "m" else certainty)
    while words[end] in _SCALES and end - at < 4:
        value = _short(Decimal(value * _SCALES[words[end]]))
        end += 1
    return Number(value, end, certainty)


def _read_words(tokens: Tokens, at: int) -> Number | None:
    words = tokens.words
    word = words[at]
    if word in ("a", "an", "half"):
        behind = words[at + 1]
        if behind in _VAGUE and word == "a":
            end = at + 2 + (words[at + 2] == "of")
            return Number(_VAGUE[behind][0], end, _VAGUE[behind][1], is_word=True)
        if word == "half":
            scale = _SCALES.get(words[at + 2], 0) if behind == "a" else 0
            return Number(scale // 2, at + 3, is_word=True) if scale else None
        return _sum_words(words, at + 1, 1) if behind in _SCALES else None
    if word in _PARTS:
        return Number(_PARTS[word], at + 1)
    return _sum_words(words, at, 0) if word in CARDINALS or word in ORDINALS else None


def _sum_words(words: list[str], at: int, current: int) -> Number | None:
    total, place, most = 0, at, at + _MOST_WORDS
    while place < most:
        word = words[place]
        scale, ordinal = _SCALES.get(word), ORDINALS.get(word)
        small = CARDINALS.get(word, ordinal)
        if scale is not None and (current or total):
            total, current = (total, current * scale) if scale <= 100 else (total + current * scale, 0)
        elif small is not None and _fits(current, small) and (place > at or small or ordinal is None):
            current += small
            if ordinal is not None:
                return Number(total + current, place + 1, is_ordinal=True, is_word=True)
        elif place == at or not _links(words, place, current):
            break
        place += 1
    return Number(total + current, place, is_word=True) if place > at else None


def _fits(current: int, small: int) -> bool:
    """Return True if a word may follow: five after twenty, twenty after three hundred."""
    rest = current % 100
    return rest == 0 or (rest >= 20 and rest % 10 == 0 and 0 < small < 10)


def _links(words: list[str], place: int, current: int) -> bool:
    word, behind = words[place], words[place + 1]
    small = CARDINALS.get(behind, ORDINALS.get(behind))
    if small is None or not small or not _fits(current, small):
        return False
    rest = current % 100
    return (word == "-" and rest != 0) or (word == "and" and rest == 0 and words[place - 1] in _SCALES)


def read_amount(tokens: Tokens, at: int) -> Reading | None:
    """Read a number with what it counts: money, percent, quantity or duration."""
    words = tokens.words
    code = SIGNS.get(words[at]) or (tokens.said(at) if tokens.said(at) in _CODES else "")
    if code:
        found = _read_plain(tokens, at + 1)
        if found is None or found.is_ordinal:
            return None
        certainty = min(
            1.0 if words[at + 1].isdecimal() else found.certainty, 0.9 if words[at] in SHARED_SIGNS else 1.0
        )
        return Reading("money", at, found.end, Decimal(found.value), certainty, code)
    one = _read_one(tokens, at)
    found = one or read_number(tokens, at)
    if found is None:
        return None
    if found.is_ordinal:
        certainty = 0.4 if found.is_word else 0.7
        return Reading("number", at, found.end, found.value, certainty, "ordinal")
    return _read_counted(tokens, at, found) or (None if one else _bare(tokens, at, found))


def _bare(tokens: Tokens, at: int, found: Number) -> Reading:
    words, certainty = tokens.words, found.certainty
    if words[at] == "one" and found.end == at + 1 and (words[at - 1] in _NOT_ONE or not words[found.end].isalpha()):
        certainty = 0.3
    return Reading("number", at, found.end, _plain(found.value), certainty)


def _plain(value: int | Decimal) -> int | float:
    return value if isinstance(value, int) else float(value) if value != value.to_integral_value() else int(value)


def _read_one(tokens: Tokens, at: int) -> Number | None:
    """Read `an hour`, `half an hour` and `a quarter of an hour`, where an article counts."""
    words = tokens.words
    word, behind = words[at], words[at + 1]
    if word == "half" and behind in ("a", "an") and TIME_UNITS.get(words[at + 2], "second") != "second":
        return Number(_PARTS["½"], at + 2)
    if word in ("a", "an") and behind in TIME_UNITS and behind not in ("second", "quarter", "s", "h", "d"):
        before, after = words[at - 1] if at else "", words[at + 2]
        return Number(1, at + 1) if before in _BEFORE_ONE or after in _BEHIND_ONE else None
    return None


def _read_counted(tokens: Tokens, at: int, found: Number) -> Reading | None:
    words, end = tokens.words, found.end
    if words[end] == "-" and tokens.joins(end) and (words[end + 1] in TIME_UNITS or words[end + 1] in _UNITS):
        end += 1  # a 3-night stay
    word, value = words[end], found.value
    if word in ("%", "percent", "pct") or (word == "per" and words[end + 1] == "cent"):
        return Reading("percent", at, end + 1 + (word == "per"), _plain(value), found.certainty, "%")
    if word in TIME_UNITS and not (len(word) == 1 and not tokens.joins(end)):
        return _read_duration(tokens, at, found, end)
    code = SIGNS.get(word) or _CURRENCIES.get(word) or (tokens.said(end) if tokens.said(end) in _CODES else "")
    if code:
        certainty = 0.6 if "pound" in word else 0.9 if word in _DOUBTFUL or word in SHARED_SIGNS else 1.0
        return Reading("money", at, end + 1, Decimal(value), min(found.certainty, certainty), code)
    if word in _CENTS:
        return Reading("money", at, end + 1, Decimal(value) / 100, min(found.certainty, 0.6), _CENTS[word])
    if word == "°" and words[end + 1] in ("c", "f"):
        return Reading("quantity", at, end + 2, _plain(value), found.certainty, f"°{words[end + 1].upper()}")
    if word == "km" and words[end + 1 : end + 3] == ["/", "h"]:
        return Reading("quantity", at, end + 3, _plain(value), found.certainty, "km/h")
    if word in _UNITS:
        unit = _UNITS[word]
        if unit == "°" and words[end + 1] in ("celsius", "fahrenheit"):
            return Reading("quantity", at, end + 2, _plain(value), found.certainty, _UNITS[words[end + 1]])
        return Reading("quantity", at, end + 1, _plain(value), found.certainty, unit)
    if isinstance(value, int) and word == "m":
        return None
    return None


def _read_duration(tokens: Tokens, at: int, found: Number, end: int) -> Reading:
    """Read one or more counted units, larger ones first: an hour and a half, 1 h 30 min, 2h30."""
    words = tokens.words
    first = unit = TIME_UNITS[words[end]]
    seconds = SECONDS[unit] * found.value
    months = CALENDAR.get(unit, 0) * found.value
    end += 1
    if words[end : end + 3] == ["and", "a", "half"]:
        seconds, months, end = (
            seconds + Decimal(SECONDS[unit]) / 2,
            months + CALENDAR.get(unit, 0) * _PARTS["½"],
            end + 3,
        )
    for _ in range(3):
        place = end + (words[end] in ("and", ","))
        more = _read_figures(tokens, place) if words[place][:1].isdecimal() else _read_words(tokens, place)
        if more is None or more.is_ordinal:
            break
        smaller = TIME_UNITS.get(words[more.end], "")
        if not smaller and unit == "hour" and words[end - 1] == "h" and tokens.joins(place):
            smaller, behind = "minute", more.end  # 2h30
        else:
            behind = more.end + 1
        if not smaller or SECONDS[smaller] >= SECONDS[unit]:
            break
        seconds, months, unit = seconds + SECONDS[smaller] * more.value, Decimal(0), smaller
        end = behind
    certainty = min(found.certainty, 0.7 if first in CALENDAR else 1.0)
    value = timedelta(seconds=float(seconds))
    how = f"{first}:{int(months)}" if months and months == int(months) else first if unit == first else unit
    return Reading("duration", at, end, value, certainty, first, how=how)


def add_to(moment: date | datetime, duration: Reading, sign: int) -> date | datetime:
    """Add a duration to a date or an aware datetime; months keep the day, hours pass in real time."""
    unit, _, months = duration.how.partition(":")
    if months:
        whole = moment.year * 12 + moment.month - 1 + sign * int(months)
        year, month = whole // 12, whole % 12 + 1
        return moment.replace(year=year, month=month, day=min(moment.day, month_length(year, month)))
    if isinstance(moment, datetime) and unit in _SMALL:
        from_utc = moment.astimezone(UTC) + sign * duration.value
        return from_utc.astimezone(moment.tzinfo)
    return moment + sign * duration.value


def is_small(duration: Reading) -> bool:
    """Return True for hours and less, which lead from one time to another."""
    return duration.how.partition(":")[0] in _SMALL


def month_length(year: int, month: int) -> int:
    """Return the number of days in a month."""
    return monthrange(year, month)[1]


STARTS: Final = frozenset(
    (*CARDINALS, *ORDINALS, *_PARTS, *SIGNS, "a", "an", "half", "-", "−", "minus", *map(str.lower, _CODES))
)
