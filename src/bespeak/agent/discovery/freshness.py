"""How long an answer is good, by what HTTP's caching headers say (RFC 9111)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 30 * 86400.0
"""Nobody is believed for longer than this."""


def directives(text: str) -> dict[str, str]:
    """The parts of a Cache-Control header, names in small letters."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name:
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def may_be_kept(headers: Mapping[str, str]) -> bool:
    """Whether an answer may be written down at all."""
    return "no-store" not in directives(headers.get("cache-control", "")) and headers.get("vary", "").strip() != "*"


def lifetime(headers: Mapping[str, str], now: float, default: float = 0.0) -> float:
    """Seconds from now for which an answer is good without asking again."""
    said = directives(headers.get("cache-control", ""))
    if "no-cache" in said or "no-store" in said:
        return 0.0
    if "max-age" in said:
        age = seconds(said["max-age"])
        whole = 0.0 if age is None else age
        return max(0.0, min(whole, _LONGEST) - (seconds(headers.get("age", "0")) or 0.0))
    if "expires" in headers:
        until = http_date(headers["expires"])
        return max(0.0, min(until - now, _LONGEST)) if until is not None else 0.0
    return default


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds after which a server wants to be asked again: a number, or a date."""
    text = headers.get("retry-after")
    if text is None:
        return None
    whole = seconds(text)
    if whole is not None:
        return whole
    until = http_date(text)
    return None if until is None else max(0.0, until - now)


def seconds(text: str) -> float | None:
    """A whole number of seconds, or None if it is none."""
    plain = text.strip()
    if not plain.isascii() or not plain.isdigit():
        return None
    # More digits than this say `for ever`, and Python would count them.
    return float(plain) if len(plain) < 12 else 1e11


def http_date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date, or None if it is none."""
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
