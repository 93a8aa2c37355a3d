"""Rate limits in a description: extensions such as `x-ratelimit`, in the forms that API providers use."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.contract.rate import SECONDS, Rate, parse_rate
from bespeak.documents.openapi.spot import Spot

_NAMES: Final = frozenset({"xratelimit", "xratelimits", "xratelimiting", "xthrottling", "xthrottle"})
"""Names of the extension, in lower case and without hyphens."""
_COUNTS: Final = ("limit", "requests", "count", "rate", "max", "calls", "maxrequests", "ratelimit")
_PERIODS: Final = ("period", "interval", "window", "unit", "per", "duration", "timeunit", "seconds")
_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds", "persecond", "1"), "s"),
    **dict.fromkeys(("m", "min", "minute", "minutes", "perminute", "60", "1m", "60s"), "min"),
    **dict.fromkeys(("h", "hour", "hours", "perhour", "3600", "1h"), "h"),
    **dict.fromkeys(("d", "day", "days", "perday", "86400", "1d"), "day"),
}
_TEXT: Final = re.compile(r"([0-9]{1,9})\s*(?:requests?|calls?|reqs?)?\s*(?:/|per)\s*([a-z]{1,8})", re.IGNORECASE)
_DEFAULT_UNIT: Final = "min"


def read_rate(spot: Spot) -> Rate | None:
    """Return the limit that an object of the description states in an extension; None if it states none."""
    if not isinstance(spot.value, dict):
        return None
    for name, value in spot.value.items():
        if isinstance(name, str) and name.lower().replace("-", "").replace("_", "") in _NAMES:
            return _rate(value)
    return None


def _rate(value: Any) -> Rate | None:
    if isinstance(value, dict):
        members = {str(key).lower().replace("-", "").replace("_", ""): inner for key, inner in value.items()}
        for unit in SECONDS:
            # {"perMinute": 60} and the like.
            named = next((key for key in members if _UNITS.get(key.removeprefix("requests")) == unit), None)
            if named is not None and named not in _PERIODS:
                return _of(members[named], unit)
        count = next((members[key] for key in _COUNTS if key in members), None)
        period = next((members[key] for key in _PERIODS if key in members), _DEFAULT_UNIT)
        return _of(count, _UNITS.get(str(period).lower().strip(), ""))
    if isinstance(value, str):
        found = _TEXT.search(value)
        return _of(found[1], _UNITS.get(found[2].lower(), "")) if found else _of(value.strip(), _DEFAULT_UNIT)
    return _of(value, _DEFAULT_UNIT)


def _of(count: object, unit: str) -> Rate | None:
    rate = parse_rate(f"{count}/{unit}") if not isinstance(count, bool) else ""
    return rate if isinstance(rate, Rate) else None
