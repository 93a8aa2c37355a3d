"""AGTP connections, sans-IO: the reader of messages, the writer of bytes, and the client's end.

Reading is independent of how the bytes are split, and the buffer exceeds the limits by at most one chunk.
Content-Length is always written, and only here (core 1).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Final, Generic, Protocol, TypeVar

from bespeak.errors import LocalProtocolError
from bespeak.protocol.status import NO_CONTENT, NOT_MODIFIED
from bespeak.protocol.wire import abnf
from bespeak.protocol.wire.head import INVALID_STATUS_LINE, ResponseHead, check_beginning, response_heads
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, RESPONSE_LIMITS, Limits, Malformed, Pause, ResponseMessage

_KEPT: Final = 4096  # bytes of returned messages that may stay in the buffer while the next one is incomplete
_DISCARDED: Final = Malformed(503, "discarded", "The rest of the input was discarded.")
HeadT = TypeVar("HeadT", bound="Head")
MessageT_co = TypeVar("MessageT_co", covariant=True)


class Head(Protocol):
    @property
    def length(self) -> int: ...


class MessageReader(Generic[HeadT, MessageT_co]):
    """Feed it with `receive_data`, then take events until NEED_DATA. After a Malformed it reads nothing more."""

    __slots__ = ("_body", "_buffer", "_code", "_ended", "_fault", "_head", "_heads", "_limits", "_scanned", "_start")

    def __init__(self, heads: Mapping[bytes, HeadT | Malformed], limits: Limits, code: str) -> None:
        self._heads = heads
        self._limits = limits
        self._code = code
        self._buffer: bytes | bytearray = b""
        self._start = 0  # where the current message begins in the buffer
        self._scanned = 0  # the end of the head is not before this offset
        self._head: HeadT | None = None
        self._body = 0  # where the body of the current message begins
        self._fault: Malformed | None = None
        self._ended = False

    def build(self, head: HeadT, body: bytes) -> MessageT_co:
        raise NotImplementedError

    def parse_head(self, head: bytes) -> HeadT | Malformed:
        return self._heads[head]

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned as a message."""
        return len(self._buffer) - self._start

    @property
    def held(self) -> int:
        return len(self._buffer)

    def discard(self) -> None:
        self._fail(_DISCARDED)

    def receive_data(self, data: bytes) -> None:
        buffer = self._buffer
        if self._fault is not None:
            return
        if not buffer:
            self._buffer = data
            return
        if self._start or type(buffer) is bytes:
            self._trim()
        self._buffer += data

    def receive_eof(self) -> None:
        self._ended = True

    def next_event(self) -> MessageT_co | Malformed | Pause:
        """Return the next complete message, the fault that ended reading, or a Pause."""
        head = self._head
        buffer = self._buffer
        if head is None:
            if not buffer and not self._ended and self._fault is None:
                return NEED_DATA
            found = self._next_head()
            if isinstance(found, (Pause, Malformed)):
                return found
            head = found
        start = self._body
        end = start + head.length
        size = len(buffer)
        if size < end:
            self._head = head
            return self._starved()
        # A view saves one of two copies; a slice of bytes is none.
        body = buffer[start:end] if type(buffer) is bytes else bytes(memoryview(buffer)[start:end])
        if size == end:
            self._buffer = b""
            end = 0
        self._start = self._scanned = end
        self._head = None
        return self.build(head, body)

    def _next_head(self) -> HeadT | Malformed | Pause:
        """Find the end of the head and parse it. A head ends with an empty line: CRLF, or LF alone."""
        if self._fault is not None:
            return self._fault
        buffer, start = self._buffer, self._start
        bound = start + self._limits.head
        crlf = buffer.find(b"\n\r\n", self._scanned, bound)
        end = buffer.find(b"\n\n", self._scanned, bound if crlf < 0 else crlf + 1)
        if end >= 0:
            self._body = end + 2
        elif crlf >= 0:
            end = crlf
            self._body = end + 3
        else:
            return self._without_head(start)
        head = self.parse_head(bytes(buffer[start : end + 1]))
        return self._fail(head) if isinstance(head, Malformed) else head

    def _without_head(self, start: int) -> Malformed | Pause:
        """Refuse an incomplete head if no further bytes can make it valid."""
        buffer, limits = self._buffer, self._limits
        self._scanned = max(start, len(buffer) - 2)
        if len(buffer) == start:
            return CLOSED if self._ended else NEED_DATA
        fault = check_beginning(buffer[start : start + limits.line], limits, self._code)
        if fault is not None:
            return self._fail(fault)
        if len(buffer) - start >= limits.head:
            return self._fail(Malformed(400, "head-too-large", f"The headers are longer than {limits.head} bytes."))
        return self._starved()

    def _starved(self) -> Malformed | Pause:
        if self._ended:
            return self._fail(Malformed(400, "incomplete-message", "The connection ended in the middle of a message."))
        if self._start > _KEPT:
            self._trim()
        return NEED_DATA

    def _trim(self) -> None:
        start = self._start
        self._buffer = bytearray(self._buffer[start:])
        self._scanned = max(0, self._scanned - start)
        self._body -= start
        self._start = 0

    def _fail(self, fault: Malformed) -> Malformed:
        self._fault = fault
        self._head = None
        self._buffer = b""
        self._start = 0
        return fault


class ResponseReader(MessageReader[ResponseHead, ResponseMessage]):
    __slots__ = ()

    def __init__(self, limits: Limits = RESPONSE_LIMITS) -> None:
        super().__init__(response_heads(limits), limits, INVALID_STATUS_LINE)

    def build(self, head: ResponseHead, body: bytes) -> ResponseMessage:
        return ResponseMessage(head.status, head.reason, head.headers, body)


Pairs = Collection[tuple[str, str]]  # headers as pairs of name and value


def encode_request(method: str, target: str, headers: Pairs = (), body: bytes = b"") -> bytes:
    line = f"AGTP/1.0 {method} {target}"
    match = abnf.REQUEST_LINE.fullmatch(line) if line.isascii() else None
    if match is None or match.groups() != (method, target) or "#" in line:
        raise LocalProtocolError(
            f"{method[:40]!a} {target[:80]!a} is not valid on a request line; percent-encode the target."
        )
    return b"%b\r\n%bContent-Length: %d\r\n\r\n%b" % (line.encode(), _encode_headers(headers), len(body), body)


def encode_response(status: int, reason: str, block: bytes = b"", headers: Pairs = (), body: bytes = b"") -> bytes:
    """Encode a response. `block` holds header lines that are already encoded and trusted."""
    if status in (NO_CONTENT, NOT_MODIFIED):
        body = b""
        if status == NO_CONTENT:
            # Core 2.4: 204 MUST NOT carry Content-Type.
            block = b"".join(line for line in block.splitlines(True) if not line.lower().startswith(b"content-type:"))
            headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
    lines = _encode_headers(headers) if headers else b""
    return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (_status_line(status, reason), block, lines, len(body), body)


def encode_ok(block: bytes, headers: Pairs, body: bytes) -> bytes:
    """Encode a response with status 200, the most frequent; the result is that of `encode_response`."""
    lines = ""
    for name, value in headers:
        if not value.isprintable():
            return encode_response(200, "OK", block, headers, body)
        lines += f"{_checked_name(name)}: {value}\r\n"
    return b"".join((b"AGTP/1.0 200 OK\r\n", block, f"{lines}Content-Length: {len(body)}\r\n\r\n".encode(), body))


def _encode_headers(headers: Pairs) -> bytes:
    lines = []
    for name, value in headers:
        # isprintable is a fast path: tabs and rare characters are left to the pattern.
        if not value.isprintable() and abnf.FIELD_VALUE.fullmatch(value) is None:
            raise LocalProtocolError(f"The value of header {name[:40]!a} contains a control character: {value[:60]!a}.")
        lines.append(f"{_checked_name(name)}: {value}\r\n")
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"A header value is not valid Unicode: {error.object[error.start]!a}.") from None


@functools.lru_cache(maxsize=512)
def _checked_name(name: str) -> str:
    if abnf.FIELD_NAME.fullmatch(name) is None:
        raise LocalProtocolError(f"{name[:60]!a} is not a valid header name.")
    if name.lower() in ("content-length", "transfer-encoding"):
        raise LocalProtocolError(f"{name} is written with the message; omit it.")
    return name


@functools.lru_cache(maxsize=128)
def _status_line(status: int, reason: str) -> bytes:
    line = f"AGTP/1.0 {status} {reason}"
    if abnf.STATUS_LINE.fullmatch(line) is None:
        raise LocalProtocolError(f"{line[:80]!a} is not a valid status line.")
    return f"{line}\r\n".encode()


class ClientConnection(ResponseReader):
    """Reads responses. An unsolicited response is a fault: it would be taken as the answer to the next request."""

    __slots__ = ("awaited",)

    def __init__(self, limits: Limits = RESPONSE_LIMITS) -> None:
        super().__init__(limits)
        self.awaited = 0  # number of requests sent and not yet answered

    def send(self, method: str, target: str, headers: Pairs = (), body: bytes = b"") -> bytes:
        data = encode_request(method, target, headers, body)
        self.awaited += 1
        return data

    def next_event(self) -> ResponseMessage | Malformed | Pause:
        """Return the next response, the fault that ended reading, or a Pause."""
        if not self.awaited and self.buffered:
            message = "The server sent a response that no request asked for."
            return self._fail(Malformed(400, "unexpected-response", message))
        event = super().next_event()
        if isinstance(event, ResponseMessage):
            self.awaited -= 1
        return event
