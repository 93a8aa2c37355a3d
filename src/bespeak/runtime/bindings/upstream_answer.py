"""Decoding of upstream responses: JSON, text, Retry-After."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
import msgspec

from bespeak.text.reading.json_data import RepeatedKeyError, decode_json

LONGEST_WAIT: Final = 24 * 3600
"""Maximum Retry-After in seconds; a longer wait is shortened to one day."""

_RETRY_STATUSES: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE})
# Text encodings. Python has others, some of which take quadratic time or are not text encodings.
_CHARSET: Final = re.compile(
    r"(?:utf-?(?:8|16|32)(?:-?[lb]e)?|(?:us-)?ascii|iso-?8859-?\d\d?|latin-?1|(?:windows-|cp)125\d"
    r"|shift[_-]jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5|koi8-[ru])",
    re.IGNORECASE,
)


def decode_answer(body: bytes | bytearray) -> Any:
    """Decode a JSON body; raise ValueError with the reason if it is not valid."""
    try:
        return decode_json(body)
    except RepeatedKeyError:
        raise ValueError("has a repeated key") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("is not JSON") from None


def decode_text(body: bytes | bytearray, charset: str | None, encoding: str | None) -> str:
    """Decode a text body by its declared charset, else UTF-8; raise ValueError if it is not valid."""
    if encoding is not None and encoding.strip().lower() not in ("", "identity"):
        # Identity was requested. Some charsets would decode compressed bytes without an error.
        raise ValueError("is compressed, although no compression was requested")
    if charset is not None and _CHARSET.fullmatch(charset) is None:
        raise ValueError("has an unknown charset")
    try:
        return body.decode(charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        raise ValueError("is not valid text in its charset") from None


def retry_after(code: int, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the Retry-After header of the upstream, to pass it on (RFC 9110 10.2.3)."""
    value = headers.get("retry-after", "").strip() if code in _RETRY_STATUSES else ""
    seconds = _seconds(value)
    return () if seconds is None else (("Retry-After", str(min(max(seconds, 1), LONGEST_WAIT))),)


def _seconds(value: str) -> int | None:
    if value.isascii() and value.isdigit():
        return int(value[:10])
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return int((when - datetime.now(UTC)).total_seconds())


def rename(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Rename upstream fields to the names of the contract; if two collide, the renamed one wins."""
    renamed = {name: value for name, value in fields.items() if name not in names}
    renamed.update((names[name], value) for name, value in fields.items() if name in names)
    return renamed
