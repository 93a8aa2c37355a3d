"""Messages in the output of a program, one per line and of limited size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KEPT: Final = 200
"""Bytes at both ends of a line that is too long."""
_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_LAST: Final = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line beyond the limit. Only its ends are known."""

    head: bytes
    tail: bytes

    @property
    def answered(self) -> int | None:
        """Id of the request that the line answers, if it stands at one of the ends."""
        found = _FIRST.match(self.head) or _LAST.search(self.tail)
        return None if found is None else int(found[1])


class MessageLines:
    """Splits the output of a program into lines. A line beyond the limit is dropped while it arrives."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """Beginning of the line that is being dropped."""
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Take a piece of the output; yield each line that it completes."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._add(part)
            yield self._line()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._head is None and self._size > self._most:
            kept = b"".join(self._parts)
            self._head, self._tail, self._parts = (kept + part)[:_KEPT], kept[-_KEPT:], []
        if self._head is not None:
            self._tail = (self._tail + part)[-_KEPT:]
        elif part:
            self._parts.append(part)

    def _line(self) -> bytes | TooLong:
        line = b"".join(self._parts) if self._head is None else TooLong(self._head, self._tail)
        self._parts, self._size, self._head, self._tail = [], 0, None, b""
        return line
