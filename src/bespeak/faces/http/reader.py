"""From the bytes of one connection to whole requests of HTTP: httptools parses, the limits are kept here."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import httptools

from bespeak.faces.http.asgi import Headers
from bespeak.faces.http.translation import read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.limits import Limits
from bespeak.protocol.wire.request_heads import LONGEST, MOST

_logger = logging.getLogger(__name__)

OVERHEAD: Final = 8
"""How many times as long as its content a chunked body may be on the wire: six bytes for each are the worst use."""

_WATCHED: Final = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect"})
_UNPLAIN: Final = frozenset({b"transfer-encoding", b"expect"})
_VERSIONS: Final = frozenset({"1.1", "1.0"})
_HOP: Final = frozenset({b"upgrade", b"connection"})


class Head(NamedTuple):
    """A request up to its body."""

    http_method: str
    path: str
    query: str
    version: str
    pairs: Headers
    """The headers as they came, names in lower case."""
    headers: dict[str, str] | Malformed
    """The same by name, or why they cannot be read so."""
    keep_alive: bool


class Asked(NamedTuple):
    """A whole request."""

    head: Head
    body: bytes


Heads = dict[bytes, tuple[Head, int]]
"""Heads that were read before, with the length of the body they announce: clients repeat them."""


class _Unreadable(Exception):
    """Raised out of the parser for a request that is not read to its end."""


class RequestReader:
    """Knows no sockets and no clocks. What is whole is handed on at once, while the parser is still at work."""

    def __init__(
        self, limits: Limits, take: Callable[[Asked], None], give_leave: Callable[[], None], heads: Heads | None = None
    ) -> None:
        """`take` gets each request; `give_leave` is called where a peer waits for 100 Continue.

        Readers of one server share `heads`.
        """
        self._limits = limits
        self._heads: Heads = {} if heads is None else heads
        self._last: Head | None = None  # of the request that was read last
        self._take = take
        self._give_leave = give_leave
        self._parser = self._new_parser()
        self.in_message = False
        """Whether a request has begun and is not whole."""
        self._in_head = False
        self._fault: Malformed | None = None
        self._piece = 0  # bytes that came last
        self._begun = 0  # bytes of the piece in which the message began
        self._head = 0  # bytes of the pieces behind that one, as long as the head lasts
        self._size = 0  # the same behind the head
        self._url = b""
        self._headers: Headers = []
        self._watched: dict[bytes, bytes] = {}  # headers that decide how the rest is read
        self._body: list[bytes] = []
        self._body_size = 0

    def feed(self, data: bytes) -> Malformed | None:
        """Read on. After a fault nothing more can be read, for it is not known where the next request would begin."""
        was_in_head, was_in_message = self._in_head, self.in_message
        end = -1
        if not was_in_message:
            end = data.find(b"\r\n\r\n")
            known = self._heads.get(data[:end]) if end > 0 else None
            if known is not None and len(data) == end + 4 + known[1]:
                self._take(Asked(known[0], data[end + 4 :]))
                return None
        self._piece = len(data)
        fault = self._parse(data)
        if fault is not None:
            return fault
        if self.in_message:
            return self._measure(head=was_in_head and self._in_head, message=was_in_message)
        if 0 < end <= LONGEST and self._last is not None:
            self._remember(data, end, self._last)
        return None

    def _remember(self, data: bytes, end: int, head: Head) -> None:
        """Keep a head that is not to be parsed again: of a plain request, which these bytes are and nothing else."""
        watched = self._watched
        length = int(watched.get(b"content-length", b"0"))
        if len(data) == end + 4 + length and head.keep_alive and _UNPLAIN.isdisjoint(watched):
            if len(self._heads) >= MOST:
                self._heads.clear()
            self._heads[data[:end]] = (head, length)

    def _parse(self, data: bytes) -> Malformed | None:
        pieces = [memoryview(data)]
        while pieces:
            piece = pieces.pop()
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                head = self._stay()
                if isinstance(head, Malformed):
                    return head
                pieces += (piece[upgrade.args[0] :], memoryview(head))
            except httptools.HttpParserError as error:
                return self._explain(error)
        return None

    def _explain(self, error: httptools.HttpParserError) -> Malformed:
        if self._fault is not None:
            return self._fault
        if isinstance(error, httptools.HttpParserCallbackError):
            _logger.error("A request could not be taken from the parser", exc_info=error.__context__)
            return Malformed(status.SERVER_ERROR, "server-error", "The request could not be read.")
        return Malformed(status.BAD_REQUEST, "malformed-request", f"This is no request of HTTP/1.1: {error}.")

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # What stands behind a last request is for nobody, and no reason to refuse it.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _stay(self) -> bytes | Malformed:
        """What to read in place of a head that asks for another protocol: it gets its answer in this one.

        The parser takes what follows such a head for the other protocol; RFC 9110 7.8 lets a server go on instead.
        """
        method = self._parser.get_method()
        wanted = b", ".join(value for name, value in self._headers if name == b"upgrade").lower()
        if method == b"CONNECT" or b"websocket" in wanted:
            what = "tunnels" if method == b"CONNECT" else "web sockets"
            message = f"This service has no {what}; its endpoints are called by GET and POST."
            return Malformed(status.NOT_IMPLEMENTED, "upgrade-not-supported", message)
        lines = [b"%b %b HTTP/%b" % (method, self._url, self._parser.get_http_version().encode())]
        lines += [b"%b: %b" % pair for pair in self._headers if pair[0] not in _HOP]
        self._parser = self._new_parser()
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _measure(self, *, head: bool, message: bool) -> Malformed | None:
        """Watch a message that comes in pieces: the parser keeps parts of it that it has not told yet."""
        limits = self._limits
        if head:
            self._head += self._piece
            if self._head > limits.head:
                return self._head_too_large()
        elif message:
            self._size += self._piece
            if self._size > limits.head + OVERHEAD * limits.body:
                return self._too_large()
        return None

    # What the parser tells.

    def on_message_begin(self) -> None:
        """A request begins."""
        self.in_message = self._in_head = True
        self._begun = self._piece
        self._head = self._size = self._body_size = 0
        self._url = b""
        self._headers, self._body = [], []
        self._watched = {}

    def on_url(self, url: bytes) -> None:
        """The target, or a part of it."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. What comes behind the body (trailers) was announced to nobody, and must add nothing."""
        if self._in_head:
            name = name.lower()
            self._headers.append((name, value))
            if name in _WATCHED:
                before = self._watched.get(name)
                self._watched[name] = value if before is None else b"%b, %b" % (before, value)

    def on_headers_complete(self) -> None:
        """The head is whole: everything that can be refused by it is refused now."""
        self._in_head = False
        fault = self._judge_size() or self._judge_framing()
        if fault is not None:
            self._fault = fault
            raise _Unreadable
        if b"expect" in self._watched and self._parser.get_http_version() == "1.1":
            self._give_leave()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body.append(body)
        self._body_size += len(body)
        if self._body_size > self._limits.body:
            self._fault = self._too_large()
            raise _Unreadable

    def on_message_complete(self) -> None:
        """A request is whole."""
        self.in_message = False
        parser = self._parser
        if parser.should_upgrade():
            return  # what becomes of it is decided outside of the parser
        version = parser.get_http_version()
        path, query = split_target(self._url)
        if self._url[:1] not in (b"/", b"*"):
            self._headers = _with_host(self._headers, self._url)
        headers = read_headers(self._headers, self._limits.headers)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        head = Head(parser.get_method().decode("ascii"), path, query, version, self._headers, headers, keep_alive)
        self._last = head
        self._take(Asked(head, self._body[0] if len(self._body) == 1 else b"".join(self._body)))

    def _judge_size(self) -> Malformed | None:
        limits = self._limits
        if len(self._url) > limits.line:
            return Malformed(414, "target-too-long", f"The target is longer than {limits.line} bytes.")
        if len(self._headers) > limits.headers:
            return Malformed(431, "head-too-large", f"The request has more than {limits.headers} headers.")
        if self._begun + self._head + self._piece > limits.head:
            size = len(self._url) + sum([len(name) + len(value) + 4 for name, value in self._headers])
            if size > limits.head:
                return self._head_too_large()
        return None

    def _judge_framing(self) -> Malformed | None:
        watched = self._watched
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            return Malformed(505, "version-not-supported", f"This server speaks HTTP/1.1, not HTTP/{version}.")
        if b"host" not in watched and version == "1.1":
            return Malformed(status.BAD_REQUEST, "host-missing", "A request of HTTP/1.1 names its Host.")
        if int(watched.get(b"content-length", b"0")) > self._limits.body:
            return self._too_large()
        if watched.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            message = "The body has a transfer encoding other than chunked; send it without."
            return Malformed(status.NOT_IMPLEMENTED, "transfer-encoding-not-supported", message)
        if watched.get(b"expect", b"100-continue").lower() != b"100-continue":
            return Malformed(417, "expectation-failed", "The only expectation known here is 100-continue.")
        return None

    def _head_too_large(self) -> Malformed:
        return Malformed(431, "head-too-large", f"The head is larger than {self._limits.head} bytes.")

    def _too_large(self) -> Malformed:
        message = f"The body is larger than {self._limits.body} bytes."
        return Malformed(status.CONTENT_TOO_LARGE, "content-too-large", message)


def split_target(target: bytes) -> tuple[str, str]:
    """Path and query of a target; a proxy may be sent a whole address."""
    text = target.decode("latin-1")
    if not text.startswith(("/", "*")):
        text = text[len(_before_path(text)) :]
    path, _, query = text.partition("?")
    return path or "/", query


def _with_host(headers: Headers, target: bytes) -> Headers:
    """Headers with the host of a whole address, which goes before the one they name (RFC 9112 3.2.2)."""
    host = _before_path(target.decode("latin-1")).partition("://")[2]
    return [(b"host", host.encode("latin-1")), *(pair for pair in headers if pair[0] != b"host")]


def _before_path(address: str) -> str:
    """Scheme and host of an address."""
    start = address.find("://") + 3
    return address[:start] + re.split("[/?]", address[start:], maxsplit=1)[0]
