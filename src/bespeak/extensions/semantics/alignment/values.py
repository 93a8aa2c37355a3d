"""How a mapping of properties changes their values: units, listed values, and forms of dates (IoA 7.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import msgspec

from bespeak.text.diagnostics.diagnostic import brief

# Units by their codes in UCUM: quantity, and the factor and the offset to its first unit.
_UNITS: Final[Mapping[str, tuple[str, str, str]]] = {
    code: (quantity, factor, offset)
    for quantity, units in {
        "length": "m 1, km 1000, cm 0.01, mm 0.001, [in_i] 0.0254, [ft_i] 0.3048, [yd_i] 0.9144, [mi_i] 1609.344",
        "mass": "kg 1, g 0.001, mg 0.000001, t 1000, [lb_av] 0.45359237, [oz_av] 0.028349523125",
        "time": "s 1, ms 0.001, min 60, h 3600, d 86400, wk 604800",
        "volume": "L 1, mL 0.001, m3 1000, [gal_us] 3.785411784, [foz_us] 0.0295735295625",
        "temperature": "Cel 1, K 1 -273.15, [degF] 5/9 -160/9",
        "speed": "m/s 1, km/h 5/18, [mi_i]/h 0.44704",
        "pressure": "Pa 1, kPa 1000, bar 100000, mm[Hg] 133.322387415",
        "energy": "J 1, kJ 1000, cal 4.184, kcal 4184, kW.h 3600000",
        "share": "1 1, % 0.01",
        "data": "By 1, kBy 1000, MBy 1000000, GBy 1000000000",
    }.items()
    for code, factor, offset in ((*unit.split(), "0")[:3] for unit in units.split(", "))
}
# Parts of dates and times: how Python writes them, and what they tell.
_TOKENS: Final[Mapping[str, tuple[str, str]]] = {
    "YYYY": ("%Y", "year"),
    "YY": ("%y", "year of a century"),
    "MMM": ("%b", "month"),
    "MM": ("%m", "month"),
    "DD": ("%d", "day"),
    "HH": ("%H", "time"),
    "mm": ("%M", "time"),
    "ss": ("%S", "time"),
    "Z": ("%z", "zone"),
}
_TOKEN: Final = re.compile("|".join(sorted(_TOKENS, key=len, reverse=True)))
UNIX: Final = "unix"  # form of a time: seconds since 1970
_FORM: Final = re.compile(r"(?:YYYY|YY|MMM|MM|DD|HH|mm|ss|Z|T|[-/.: ,])+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = 10**15  # integers with more digits than a number of JSON keeps are converted exactly, or not at all
_SLACK: Final = 1.1e-14  # relative difference that comes from floating point, not from the value
_MOST_TERMS: Final = 1_000
_LONGEST: Final = 64  # most characters of a date


class ValueFault(Exception):
    """A value cannot be translated; the text says why."""


class ValueMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How values of the source become values of the target; one of the four ways."""

    terms: Mapping[str, str | int | float | bool | None] = {}  # values of the target by values of the source
    units: tuple[str, str] | None = None  # UCUM codes of the source and the target
    factor: float | None = None  # the target is the source times this, plus `offset`
    offset: float = 0.0
    dates: tuple[str, str] | None = None  # forms of the source and the target, such as DD.MM.YYYY, or unix

    @property
    def fault(self) -> str | None:
        """Why the mapping cannot be used; None if it can."""
        given = [self.terms or None, self.units, self.factor, self.dates]
        if sum(one is not None for one in given) != 1:
            return "values must have exactly one of terms, units, factor and dates"
        if len(self.terms) > _MOST_TERMS:
            return f"terms may list {_MOST_TERMS} values; got {len(self.terms)}"
        if self.offset and self.factor is None:
            return "an offset must have a factor"
        if self.units is not None:
            unknown = next((code for code in self.units if code not in _UNITS), None)
            if unknown is not None:
                return f"the unit {brief(unknown)} is not known; give a factor, or one of {', '.join(_UNITS)}"
            if _UNITS[self.units[0]][0] != _UNITS[self.units[1]][0]:
                return f"the units {self.units[0]} and {self.units[1]} measure different quantities"
        if self.factor == 0:
            return "the factor must not be 0"
        return None if self.dates is None else _fault_of_forms(*self.dates)

    @property
    def converts(self) -> bool:
        """True if the mapping is for numbers."""
        return self.units is not None or self.factor is not None


def _fault_of_forms(source: str, target: str) -> str | None:
    told = []
    for form in (source, target):
        if form != UNIX and not _FORM.fullmatch(form):
            return f"a form of dates has YYYY, MM, DD, HH, mm, ss and Z, or is unix; got {brief(form)}"
        tokens = _TOKEN.findall(form) if form != UNIX else ["YYYY", "MM", "DD", "Z"]
        if len(set(tokens)) < len(tokens):
            return f"a form of dates must have each part once; got {brief(form)}"
        # Without a time, a date is one of midnight; beside `unix`, one of UTC.
        left_out = {"time", "zone"} if UNIX in (source, target) else {"time"}
        told.append({_TOKENS[token][1] for token in tokens} - left_out)
    if told[0] != told[1]:
        differ = ", ".join(sorted(told[0] ^ told[1]))
        return f"both forms of dates must tell the same; only one of {source} and {target} has: {differ}"
    return None


def translate_value(value: Any, mapping: ValueMapping, *, inverted: bool = False) -> Any:
    """Translate one value; nothing stays nothing. Raises ValueFault for what has no exact counterpart."""
    if value is None:
        return None
    if mapping.terms:
        return _translate_term(value, mapping.terms, inverted=inverted)
    if mapping.dates is not None:
        return _translate_date(value, *(reversed(mapping.dates) if inverted else mapping.dates))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueFault(f"a number is needed; got {brief(value)}")
    times, plus, over = _line(mapping.units, mapping.factor, mapping.offset, inverted)
    try:
        above, below = Decimal(str(value)).as_integer_ratio()
        above, below = times * above + plus * below, over * below
        if above % below == 0:
            return above // below
        found = _round(above / below)
    except (ValueError, OverflowError):
        raise ValueFault(f"{brief(value)} cannot be converted") from None
    if isinstance(value, int) and abs(value) >= _EXACT and Fraction(str(found)) != Fraction(above, below):
        raise ValueFault(f"{brief(value)} cannot be converted without a loss")
    return int(found) if found.is_integer() else found


@lru_cache(maxsize=256)
def _line(units: tuple[str, str] | None, factor: float | None, offset: float, inverted: bool) -> tuple[int, int, int]:
    """Return integers a, b and c: the target is (a * source + b) / c. Fractions would take ten times as long."""
    if units is not None:
        (_, rise, shift), (_, other_rise, other_shift) = (
            _UNITS[code] for code in (reversed(units) if inverted else units)
        )
        slope, start = (
            Fraction(rise) / Fraction(other_rise),
            (Fraction(shift) - Fraction(other_shift)) / Fraction(other_rise),
        )
    else:
        slope, start = Fraction(str(factor)), Fraction(str(offset))
        slope, start = (1 / slope, -start / slope) if inverted else (slope, start)
    over = math.lcm(slope.denominator, start.denominator)
    return int(slope * over), int(start * over), over


def _round(number: float) -> float:
    """Return the shortest decimal number next to a number, so that a value survives the way there and back."""
    short = float(f"{number:.11g}")
    return short if abs(short - number) <= _SLACK * abs(number) else float(f"{number:.15g}")


def parse_text(text: str, mapping: ValueMapping, *, inverted: bool = False) -> Any:
    """Return the value that a text of a path or a query stands for where this mapping applies."""
    if mapping.terms:
        listed = mapping.terms.values() if inverted else ()
        return next((one for one in listed if not isinstance(one, str) and _write(one) == text), text)
    source = "" if mapping.dates is None else mapping.dates[inverted]
    if not mapping.converts and source != UNIX:
        return text
    try:
        number = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return number if isinstance(number, int | float) and math.isfinite(number) else text


def _write(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _translate_term(value: Any, terms: Mapping[str, Any], *, inverted: bool) -> Any:
    if not inverted:
        name = _write(value)
        if name not in terms:
            raise ValueFault(f"the mapping lists no counterpart of {brief(value)}; it lists {brief(list(terms))}")
        return terms[name]
    # In JSON, 1 and 1.0 are one number, and true is none.
    kind = isinstance(value, bool)
    found = [one for one, other in terms.items() if other == value and isinstance(other, bool) == kind]
    if len(found) != 1:
        many = "several counterparts" if found else "no counterpart"
        raise ValueFault(f"the mapping lists {many} of {brief(value)}")
    return found[0]


def _translate_date(value: Any, source: str, target: str) -> Any:
    moment = _read_date(value, source)
    try:
        found = _write_date(moment, target)
        kept = _read_date(found, target)
    except (ValueError, OverflowError, ValueFault):
        kept, found = None, None
    if UNIX in (source, target) and kept is not None:
        # Without a zone, a date is one of UTC, as the seconds since 1970 are.
        moment, kept = (one if one.tzinfo else one.replace(tzinfo=UTC) for one in (moment, kept))
    if kept != moment:
        raise ValueFault(f"{brief(value)} cannot be written as {target} without a loss")
    return found


def _read_date(value: Any, form: str) -> datetime:
    try:
        if form != UNIX:
            if not isinstance(value, str) or len(value) > _LONGEST:
                raise ValueError
            return datetime.strptime(value, _pattern(form))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        return _EPOCH + timedelta(seconds=value)
    except (ValueError, OverflowError):
        raise ValueFault(f"{brief(value)} is not a date of the form {form}") from None


def _write_date(moment: datetime, form: str) -> Any:
    if form == UNIX:
        passed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
        return passed.days * 86_400 + passed.seconds
    zone = f"{moment:%z}"
    zone = "Z" if moment.tzinfo is None or zone == "+0000" else f"{zone[:3]}:{zone[3:5]}"  # as in RFC 3339
    return moment.strftime(_pattern(form).replace("%z", zone))


def _pattern(form: str) -> str:
    return _TOKEN.sub(lambda found: _TOKENS[found[0]][0], form)
