"""Dates in any language, read by the library of the extra `normalize`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def is_available() -> bool:
    """Return True if the library is installed."""
    return importlib.util.find_spec("dateparser") is not None


def parse_date(text: str, languages: Sequence[str], order: str) -> tuple[datetime, bool] | None:
    """Return a moment with day, month and year, and whether its time is named. An unknown language is a ValueError."""
    parser = _parser(tuple(languages), order)
    try:
        found = parser.get_date_data(text)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError):
        return None  # odd texts break the library in many ways
    return None if found.date_obj is None else (found.date_obj, found.period == "time")


@lru_cache(maxsize=32)
def _parser(languages: tuple[str, ...], order: str) -> Any:
    from dateparser.date import DateDataParser  # type: ignore[import-untyped] # noqa: PLC0415 - slow to import

    settings = {"DATE_ORDER": order, "REQUIRE_PARTS": ["day", "month", "year"], "STRICT_PARSING": True}
    # Only what the text says: `yesterday` would be another day tomorrow.
    settings |= {"PARSERS": ["absolute-time"], "RETURN_TIME_AS_PERIOD": True}
    return DateDataParser(languages=list(languages), settings=settings)
