"""Results that were too long, kept for a while so that their callers can read the rest as resources."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

LIFETIME: Final = 900.0
"""Seconds for which a result is kept."""
MOST: Final = 64
MOST_CHARACTERS: Final = 16_000_000
"""Bounds of all kept results together."""


@dataclass(frozen=True, slots=True)
class _Kept:
    text: str
    media_type: str
    caller: str
    ends: float


class KeptResults:
    """The results of one process."""

    def __init__(self, server_id: str, part: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep results of a service; each can be read whole, or in parts of `part` characters."""
        self._place = f"bespeak://{quote(server_id.lower(), safe=':[]')}/results/"
        self._part = part
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._size = 0

    def keep(self, text: str, media_type: str, caller: str) -> str | None:
        """Keep a result for its caller; return its URI, or None if it is too large."""
        if len(text) > MOST_CHARACTERS // 4:
            return None
        now = self._clock()
        while self._kept and (
            len(self._kept) >= MOST
            or self._size + len(text) > MOST_CHARACTERS
            or next(iter(self._kept.values())).ends <= now
        ):
            self._drop(next(iter(self._kept)))
        key = secrets.token_urlsafe(24)
        self._kept[key] = _Kept(text, media_type, caller, now + LIFETIME)
        self._size += len(text)
        return self._place + key

    def parts(self, text: str) -> int:
        """Return the number of parts of a result."""
        return -(-len(text) // self._part)

    def read(self, uri: str, caller: str) -> dict[str, Any] | None:
        """Return the contents of a kept result, or of a part; None if there is none for the caller."""
        if not uri.startswith(self._place):
            return None
        key, _, number = uri.removeprefix(self._place).partition("/")
        kept = self._kept.get(key)
        if kept is None or kept.caller != caller:
            return None
        if kept.ends <= self._clock():
            self._drop(key)
            return None
        text, media_type = kept.text, kept.media_type
        if number:
            if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= self.parts(text)):
                return None
            text, media_type = text[(int(number) - 1) * self._part : int(number) * self._part], "text/plain"
        return {"uri": uri, "mimeType": media_type, "text": text}

    def _drop(self, key: str) -> None:
        self._size -= len(self._kept.pop(key).text)
