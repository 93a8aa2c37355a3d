"""How a mapping of properties changes their values: units, listed values, and forms of dates (IoA 7.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
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
        "speed": "m/s 1, km/h 1/3.6, [mi_i]/h 0.44704",
        "pressure": "Pa 1, kPa 1000, bar 100000, mm[Hg] 133.322387415",
        "energy": "J 1, kJ 1000, cal 4.184, kcal 4184, kW.h 3600000",
        "share": "1 1, % 0.01",
        "data": "By 1, kBy 1000, MBy 1000000, GBy 1000000000",
    }.items()
    for code, factor, offset in ((*unit.split(), "0")[:3] for unit in units.split(", "))
}
_TOKENS: Final[Mapping[str, str]] = {
    "YYYY": "%Y",
    "YY": "%y",
    "MM": "%m",
    "DD": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "MMM": "%b",
    "Z": "%z",
}
_TOKEN: Final = re.compile("|".join(sorted(_TOKENS, key=len, reverse=True)))
UNIX: Final = "unix"  # form of a time: seconds since 1970
_FORM: Final = re.compile(r"(?:YYYY|YY|MMM|MM|DD|HH|mm|ss|Z|T|[-/.: ,])+")
_SIGNIFICANT: Final = 12
_LONGEST: Final = 64  # most characters of a date


class ValueFault(Exception):
    """A value cannot be translated; the text says why."""


class ValueMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How values of the source become values of the target; one of the three ways."""

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
        if self.units is not None:
            unknown = next((code for code in self.units if code not in _UNITS), None)
            if unknown is not None:
                return f"the unit {brief(unknown)} is not known; give a factor, or one of {', '.join(_UNITS)}"
            if _UNITS[self.units[0]][0] != _UNITS[self.units[1]][0]:
                return f"the units {self.units[0]} and {self.units[1]} measure different quantities"
        if self.factor == 0:
            return "the factor must not be 0"
        form = next((one for one in self.dates or () if one != UNIX and not _FORM.fullmatch(one)), None)
        if form is not None:
            return f"a form of dates has YYYY, MM, DD, HH, mm, ss and Z, or is unix; got {brief(form)}"
        return None


def translate_value(value: Any, mapping: ValueMapping, *, inverted: bool = False) -> Any:
    """Translate one value; nothing stays nothing. Raises ValueFault."""
    if value is None:
        return None
    if mapping.terms:
        return _translate_term(value, mapping.terms, inverted=inverted)
    if mapping.dates is not None:
        return _translate_date(value, *(reversed(mapping.dates) if inverted else mapping.dates))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueFault(f"a number is needed; got {brief(value)}")
    try:
        number = Decimal(str(value))
        if mapping.units is None:
            factor, offset = Decimal(str(mapping.factor)), Decimal(str(mapping.offset))
            number = (number - offset) / factor if inverted else number * factor + offset
        else:
            source, target = reversed(mapping.units) if inverted else mapping.units
            (_, factor_text, offset_text), (_, other_factor, other_offset) = _UNITS[source], _UNITS[target]
            number = number * _fraction(factor_text) + _fraction(offset_text)
            number = (number - _fraction(other_offset)) / _fraction(other_factor)
        found = float(f"{number:.{_SIGNIFICANT}g}")
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueFault(f"{brief(value)} cannot be converted") from None
    return int(found) if found.is_integer() else found


def _fraction(text: str) -> Decimal:
    above, _, below = text.partition("/")
    return Decimal(above) / Decimal(below or 1)


def _translate_term(value: Any, terms: Mapping[str, Any], *, inverted: bool) -> Any:
    if not inverted:
        name = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if name not in terms:
            raise ValueFault(f"the mapping lists no counterpart of {brief(value)}; it lists {brief(list(terms))}")
        return terms[name]
    found = [one for one, other in terms.items() if type(other) is type(value) and other == value]
    if len(found) != 1:
        many = "several counterparts" if found else "no counterpart"
        raise ValueFault(f"the mapping lists {many} of {brief(value)}")
    return found[0]


def _translate_date(value: Any, source: str, target: str) -> Any:
    try:
        if source == UNIX:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError
            moment = datetime.fromtimestamp(value, UTC)
        else:
            if not isinstance(value, str) or len(value) > _LONGEST:
                raise ValueError
            moment = datetime.strptime(value, _pattern(source))
        if target != UNIX:
            return moment.strftime(_pattern(target)).replace("+0000", "Z")
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int(moment.timestamp())
    except (ValueError, OverflowError, OSError):
        raise ValueFault(f"{brief(value)} is not a date of the form {source}") from None


def _pattern(form: str) -> str:
    return _TOKEN.sub(lambda found: _TOKENS[found[0]], form)
