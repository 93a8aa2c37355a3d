"""Timestamps: ISO 8601, UTC by default, and seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_LATEST: Final = 253_402_300_799  # last second of the year 9999, the latest that can be written


def read_moment(text: str) -> datetime | None:
    """Parse a timestamp, in UTC if it has no offset; return None if it is not valid."""
    if len(text) > 64:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_instant(text: str) -> float | None:
    """Parse a timestamp into seconds since 1970; return None if it is not valid."""
    moment = read_moment(text)
    seconds = -1.0 if moment is None else moment.timestamp()
    return seconds if 0 <= seconds <= _LATEST else None


def write_instant(seconds: float) -> str:
    return f"{_whole_second(int(seconds))}Z"


def write_milliseconds(seconds: float) -> str:
    whole = int(seconds)
    return f"{_whole_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(4)
def _whole_second(seconds: int) -> str:
    """Format a whole second; cached, because thousands of records share it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
