"""A cache of request heads, parsed once, with the ids that change per request kept separate."""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import Final

import msgspec

from bespeak.protocol.wire.head import RequestHead, parse_request_head
from bespeak.protocol.wire.limits import Limits
from bespeak.protocol.wire.memory import Memory
from bespeak.protocol.wire.messages import Malformed

MOST: Final = 512
LONGEST: Final = 2048
"""Number and length of cached heads: a repeated head costs one lookup."""

CHANGING: Final = (
    (b"\r\nTask-ID: ", "task-id"),
    (b"\r\nRequest-ID: ", "request-id"),
    (b"\r\nIdempotency-Key: ", "idempotency-key"),
)
"""Header lines that are cut out of a head before the lookup, spelled as clients do."""


class RequestHeads(dict[bytes, RequestHead | Malformed]):
    """`heads[head]` returns the result of `parse_request_head` for the head.

    A head without ids is cached as a whole. Otherwise the rest of it is cached and the ids are added: a cached value
    never depends on bytes other than its key.
    """

    __slots__ = ("_limits", "_rests")

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        # Lines that are cut out count too, so the rest may have fewer lines.
        fewer = msgspec.structs.replace(limits, headers=limits.headers - len(CHANGING))
        self._rests = Memory(functools.partial(parse_request_head, limits=fewer), most=MOST, longest=LONGEST)

    def __missing__(self, head: bytes) -> RequestHead | Malformed:
        # This is one function because it runs for every request with an id: calls cost as much as the work.
        rest = head
        ids: dict[str, str] = {}
        for mark, name in CHANGING:
            start = rest.find(mark)
            if start >= 0:
                end = rest.find(b"\r\n", start + 2)
                value = rest[start + len(mark) : end]
                if end < 0 or not value.isascii():
                    return parse_request_head(head, self._limits)
                ids[name] = value.decode()
                rest = rest[:start] + rest[end:]
        if not ids:
            return self._remember(head)
        known = self._rests[rest]
        if isinstance(known, RequestHead):
            headers = known.headers | ids
            text = "".join(ids.values())
            if len(headers) == len(known.headers) + len(ids) and text.isprintable() and " " not in text:
                return RequestHead(known.method, known.path, known.query, MappingProxyType(headers), known.length)
        return parse_request_head(head, self._limits)

    def _remember(self, head: bytes) -> RequestHead | Malformed:
        parsed = parse_request_head(head, self._limits)
        if len(head) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
            self[head] = parsed
        return parsed


@functools.lru_cache(maxsize=8)
def request_heads(limits: Limits) -> RequestHeads:
    """Return the cache shared by all readers with these limits."""
    return RequestHeads(limits)
