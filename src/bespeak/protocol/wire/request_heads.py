"""Heads of requests by their bytes: parsed once, and apart from the ids that change with every request."""

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
"""Heads that are remembered, and their length: the head of a client that sends nothing new is found in one look-up."""

_CHANGING: Final = ((b"\r\nTask-ID: ", "task-id"), (b"\r\nRequest-ID: ", "request-id"))
"""Lines that are cut out of a head, written as clients write them."""


class RequestHeads(dict[bytes, RequestHead | Malformed]):
    """`heads[head]` is what `parse_request_head` gives for the head.

    A head without ids is remembered whole. Of one with ids the rest is remembered, and the ids are added to it: nothing
    that is kept depends on bytes other than those it is kept under.
    """

    __slots__ = ("_limits", "_rests")

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        # What is cut out counts as well, so the rest may have fewer lines.
        fewer = msgspec.structs.replace(limits, headers=limits.headers - len(_CHANGING))
        self._rests = Memory(functools.partial(parse_request_head, limits=fewer), most=MOST, longest=LONGEST)

    def __missing__(self, head: bytes) -> RequestHead | Malformed:
        # This is one function because it runs for every request with an id: calls cost as much as the work.
        rest = head
        ids: dict[str, str] = {}
        for mark, name in _CHANGING:
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
    """Return the heads shared by all readers with these limits."""
    return RequestHeads(limits)
