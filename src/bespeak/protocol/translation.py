"""Between the wire and the exchange, for every AGTP transport: requests from bytes, responses to bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final

from bespeak.protocol.exchange.headers import CONTINUATION_TOKEN
from bespeak.protocol.exchange.messages import Connection, Request, Response, Stream
from bespeak.protocol.status import OK, REASONS
from bespeak.protocol.wire.connection import MessageReader, encode_ok, encode_response
from bespeak.protocol.wire.head import CHANGING, INVALID_REQUEST_LINE, LONGEST, RequestHead, request_heads
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, NEED_DATA, Limits, Malformed, Pause

_LONGEST_ID: Final = 128  # length of an id that is looked for in place; a longer one is read like any other header
_REPEATED: Final = frozenset({"Response-ID", "Task-ID", "Request-ID"})  # headers of every message of a stream


class RequestReader(MessageReader[RequestHead, Request]):
    """The server's reader. A head that repeats the one before is compared in place, neither copied nor hashed."""

    __slots__ = ("_after", "_before", "_fields", "_known", "_name", "connection")

    def __init__(self, limits: Limits = DEFAULT_LIMITS, connection: Connection | None = None) -> None:
        super().__init__(request_heads(limits), limits, INVALID_REQUEST_LINE)
        self.connection = connection or Connection()
        self._known: RequestHead | None = None
        self._before = self._after = b""  # the bytes of the known head around its id
        self._name = ""  # of the header with the id; empty if the head has none
        self._fields: dict[str, str] = {}  # a copy of its headers: copying a proxy takes four times as long

    def next_event(self) -> Request | Malformed | Pause:
        """Return the next complete message, the fault that ended reading, or a Pause."""
        known = self._known
        buffer = self._buffer
        start = self._start
        if not buffer and self._head is None and self._fault is None and not self._ended:
            return NEED_DATA
        if known is None or self._head is not None or not buffer.startswith(self._before, start):
            return super().next_event()
        at = start + len(self._before)
        headers: Mapping[str, str] = known.headers
        name = self._name
        if name:
            end = buffer.find(b"\r", at, at + _LONGEST_ID)
            if end < 0 or not buffer.startswith(self._after, end):
                return super().next_event()
            given = buffer[at:end]
            at = end + len(self._after)
            # Nothing in such an id can begin another line or another value.
            if not given.translate(None, b"-_.:").isalnum() or at - start > self._limits.head:
                return super().next_event()
            headers = {**self._fields, name: given.decode()}
        end = at + known.length
        size = len(buffer)
        if end > size:
            return super().next_event()
        body = buffer[at:end] if type(buffer) is bytes else bytes(memoryview(buffer)[at:end])
        if size == end:
            self._buffer = b""
            end = 0
        self._start = self._scanned = end
        return Request(known.method, known.path, known.query, headers, body, self.connection)

    def parse_head(self, head: bytes) -> RequestHead | Malformed:
        """Parse a head, and remember it for the next one of the connection."""
        found = self._heads[head]
        self._known = None
        ids = [(head.find(mark), mark, name) for mark, name in CHANGING if mark in head]
        if isinstance(found, Malformed) or len(head) > LONGEST or len(ids) > 1 or not head.endswith(b"\r\n"):
            return found
        self._name, self._before, self._after = "", head + b"\r\n", b""
        for at, mark, name in ids:
            start = at + len(mark)
            self._name, self._before, self._fields = name, head[:start], dict(found.headers)
            self._after = head[head.find(b"\r\n", start) :] + b"\r\n"
        self._known = found
        return found

    def build(self, head: RequestHead, body: bytes) -> Request:
        return Request(head.method, head.path, head.query, head.headers, body, self.connection)


def to_bytes(response: Response) -> bytes:
    status = response.status
    if status == OK:
        return encode_ok(response.block.encoded, response.headers, response.body)
    return encode_response(status, REASONS.get(status, ""), response.block.encoded, response.headers, response.body)


async def messages_of(response: Response, stream: Stream) -> AsyncGenerator[tuple[Response, bool]]:
    """Yield the messages of a stream, each with whether it is the last one.

    Core 1: a stream is several messages one after another. How the last one is recognised is not said, so all others
    have a Continuation-Token, which only counts the messages of the answer.
    """
    named, number, headers = response.header("Response-ID") or "", 0, response.headers
    try:
        while True:
            batch = await stream.next()
            if batch.failure is not None:
                yield batch.failure, True
                return
            number += 1
            token = () if batch.ended else ((CONTINUATION_TOKEN, f"{named}.{number}"),)
            body = b'{"items":[' + b",".join(batch.items) + b"]}"
            yield Response(response.status, body, response.block, headers + token), batch.ended
            if batch.ended:
                return
            headers = tuple(pair for pair in response.headers if pair[0] in _REPEATED)
    finally:
        await stream.aclose()
