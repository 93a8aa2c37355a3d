"""Freshness of a response by HTTP's caching headers (RFC 9111)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 30 * 86400.0
"""Maximum lifetime in seconds, whatever the server says."""


def directives(text: str) -> dict[str, str]:
    """Parse a Cache-Control header; names are in lower case."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name:
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def may_be_kept(headers: Mapping[str, str]) -> bool:
    """Return True if a response may be stored."""
    return "no-store" not in directives(headers.get("cache-control", "")) and headers.get("vary", "").strip() != "*"


def lifetime(headers: Mapping[str, str], now: float, default: float = 0.0) -> float:
    """Return the seconds for which a response is fresh."""
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
    """Parse a Retry-After header, a number or a date, into seconds."""
    text = headers.get("retry-after")
    if text is None:
        return None
    whole = seconds(text)
    if whole is not None:
        return whole
    until = http_date(text)
    return None if until is None else max(0.0, until - now)


def seconds(text: str) -> float | None:
    """Parse a whole number of seconds; return None for other text."""
    plain = text.strip()
    if not plain.isascii() or not plain.isdigit():
        return None
    # Longer numbers exceed any limit, and Python refuses to parse very long ones.
    return float(plain) if len(plain) < 12 else 1e11


def http_date(text: str) -> float | None:
    """Parse an HTTP date into seconds since 1970; return None for other text."""
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
