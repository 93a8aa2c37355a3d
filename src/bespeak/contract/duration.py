"""Durations as agents write them: `24h`, `7d`, or ISO 8601 such as `P7D` (core 4.6)."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SHORT: Final = re.compile(r"([0-9]{1,9})([smhd])")
# ISO 8601 4.4.3.2, without months and years, whose length depends on where they begin.
_ISO: Final = re.compile(
    r"P(?:(?P<w>[0-9]{1,9})W|(?:(?P<d>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,9})H)?(?:(?P<m>[0-9]{1,9})M)?(?:(?P<s>[0-9]{1,9})S)?)?)"
)


def read_duration(text: str) -> int | None:
    """Parse a duration into seconds; return None if it is not valid or not positive."""
    short = _SHORT.fullmatch(text)
    if short is not None:
        return int(short[1]) * _UNITS[short[2]] or None
    parts = _ISO.fullmatch(text)
    if parts is None:
        return None
    named = {unit: int(number) for unit, number in parts.groupdict().items() if number is not None}
    return sum(number * (7 * 86400 if unit == "w" else _UNITS[unit]) for unit, number in named.items()) or None


def write_duration(seconds: float) -> str:
    """Format a duration in the largest unit that divides it."""
    whole = int(seconds)
    unit = next(name for name, size in _UNITS.items() if whole % size == 0)
    return f"{whole // _UNITS[unit]}{unit}"
