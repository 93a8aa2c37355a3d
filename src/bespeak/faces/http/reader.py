"""From the bytes of one connection to complete HTTP requests: httptools parses, the limits are enforced here."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import httptools

from bespeak.faces.http.asgi import Headers
from bespeak.faces.http.translation import read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import stream_type
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.head import LONGEST, MOST
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Limits, Pause

if TYPE_CHECKING:
    from bespeak.faces.http.files import FormReader

_logger = logging.getLogger(__name__)
OVERHEAD: Final = 8  # maximum ratio of a chunked body on the wire to its content; six is the worst legitimate case
PARSED: Final = 1024  # bytes that a parsed request takes beside its body: more than on the wire
_DISCARDED: Final = Malformed(status.UNAVAILABLE, "discarded", "The rest of the input was discarded.")
_WATCHED: Final = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect"})
_UNPLAIN: Final = frozenset({b"transfer-encoding", b"expect"})
_VERSIONS: Final = frozenset({"1.1", "1.0"})
_PROGRESS: Final = 65536  # bytes of a form after which its deadline begins anew
OpenForm = Callable[[str, str, Mapping[str, str]], "FormReader | Malformed | None"]
"""Begins to read a form, by HTTP method, path and headers; returns None for a request that takes none."""


class HttpHead(NamedTuple):
    http_method: str
    path: str
    query: str
    version: str
    pairs: Headers  # headers as received; names in lower case
    headers: dict[str, str] | Malformed  # headers by name, or the fault that prevents it
    keep_alive: bool
    wants_stream: bool = False  # True if `Accept` asks for a stream


class Asked(NamedTuple):
    head: HttpHead
    body: bytes
    form: FormReader | None = None  # a form, which was read while it arrived and must be closed


Heads = dict[bytes, tuple[HttpHead, int]]
"""Cache of parsed heads with the body length they announce: clients repeat their heads. `wire.memory` has the rule."""


class _Abandoned(Exception):
    """Raised out of the parser to abandon a request."""


class HttpRequestReader:
    """Sans-IO parser: bytes in, complete requests out; no sockets, no clocks."""

    def __init__(self, limits: Limits, heads: Heads | None = None, open_form: OpenForm | None = None) -> None:
        """Create a reader; `heads` is a cache shared by the readers of one server, `open_form` begins forms."""
        self._open_form = open_form
        self._form: FormReader | None = None
        self._unnoticed = 0  # bytes of a form since `progressed` was last True
        self._limits = limits
        self._heads: Heads = {} if heads is None else heads
        self._events: deque[Asked | Malformed] = deque()
        self._parser = self._new_parser()
        self.buffered = 0  # bytes of requests not yet returned, or not yet complete
        self.expects = False  # True if the peer waits for 100 Continue before it sends the body
        self._ended = False
        self._in_message = False  # a request has begun and is not complete
        self._in_head = False
        self._begun_here = 0  # requests that began in the current chunk
        self._fault: Malformed | None = None
        self._refused: Malformed | None = None  # the refusal of a request that the parser has not finished
        self._piece = 0  # bytes of the current chunk
        self._begun = 0  # bytes of the chunk in which the message began
        self._head = 0  # bytes of the following chunks, up to the end of the head
        self._size = 0  # the same after the head
        self._url = b""
        self._headers: Headers = []
        self._watched: dict[bytes, bytes] = {}  # headers that decide how the rest is parsed
        self._body: bytes | bytearray = b""

    @property
    def held(self) -> int:
        if self._events:
            return self.buffered + PARSED * len(self._events)
        return min(self.buffered, self._limits.head + len(self._body))

    def progressed(self) -> bool:
        """Return True if enough of a form has arrived to wait for more of it: a large one takes its time."""
        if self._form is None or self._form.size - self._unnoticed < _PROGRESS:
            return False
        self._unnoticed = self._form.size
        return True

    def discard(self) -> None:
        self._fault = _DISCARDED
        for event in self._events:
            if isinstance(event, Asked) and event.form is not None:
                event.form.close()
        self._events.clear()
        self.buffered = 0
        self._release_message()

    def _release_message(self) -> None:
        """Release the parts of a message: an idle connection must not keep the last one."""
        self._url = self._body = b""
        self._headers = []
        if self._form is not None:
            self._form.close()
            self._form = None

    def receive_data(self, data: bytes) -> None:
        """Add received bytes. After a fault they are ignored: where the next request would begin is unknown."""
        if self._fault is not None:
            return
        was_in_head, was_in_message = self._in_head, self._in_message
        end = -1
        if not was_in_message:
            end = data.find(b"\r\n\r\n")
            known = self._heads.get(data[:end]) if end > 0 else None
            if known is not None and len(data) == end + 4 + known[1]:
                self.buffered += len(data)
                self._events.append(Asked(known[0], data[end + 4 :]))
                return
        self._piece = len(data)
        self._begun_here = 0
        had_form = self._form is not None
        fault = self._parse(data)
        if fault is None and self._in_message:
            fault = self._measure(head=was_in_head and self._in_head, message=was_in_message)
        if fault is not None:
            self._fault = fault
            self._events.append(fault)
            self._release_message()
        elif 0 < end <= LONGEST and len(self._events) > 0:
            self._remember(data, end)
        size = 1 if had_form or self._form is not None else len(data)  # what is on disk takes no memory
        self.buffered = self.buffered + size if self._in_message or self._events else 0

    def receive_eof(self) -> None:
        self._ended = True

    def next_event(self) -> Asked | Malformed | Pause:
        if not self._events:
            return CLOSED if self._ended else NEED_DATA
        event = self._events.popleft()
        if not self._events:
            self.buffered = self._begun + self._head + self._size if self._in_message else 0
        return event

    def _remember(self, data: bytes, end: int) -> None:
        """Cache the head of a simple request, if these bytes are exactly that request."""
        # A cached head must depend only on the bytes that are its key. Otherwise a request that began in an earlier
        # chunk, or after blank lines, would be returned to every client that sends the same bytes.
        last = self._events[-1]
        watched = self._watched
        length = int(watched.get(b"content-length", b"0"))
        whole = self._begun_here == 1 and not self._in_message and len(data) == end + 4 + length
        plain = _UNPLAIN.isdisjoint(watched)
        if isinstance(last, Asked) and last.form is None and whole and plain and last.head.keep_alive:
            if len(self._heads) >= MOST:
                self._heads.clear()
            self._heads[data[:end]] = (last.head, length)

    def _parse(self, data: bytes) -> Malformed | None:
        pieces = [memoryview(data)]
        while pieces:
            piece = pieces.pop()
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                head = self._ignore_upgrade()
                if isinstance(head, Malformed):
                    return head
                pieces += (piece[upgrade.args[0] :], memoryview(head))
            except httptools.HttpParserError as error:
                return self._explain(error)
        return None

    def _explain(self, error: httptools.HttpParserError) -> Malformed:
        if self._refused is not None:
            return self._refused
        if isinstance(error, httptools.HttpParserCallbackError):
            _logger.error("Could not read a request from the parser", exc_info=error.__context__)
            return Malformed(status.SERVER_ERROR, "server-error", "The request could not be read.")
        return Malformed(status.BAD_REQUEST, "malformed-request", f"This is not a valid HTTP/1.1 request: {error}.")

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # Data after the last request is ignored, and no reason to refuse it.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _ignore_upgrade(self) -> bytes | Malformed:
        """Return replacement bytes for a head with `Upgrade`, so that the request is answered in HTTP/1.1."""
        # The parser treats the data after such a head as the other protocol; RFC 9110 7.8 lets a server ignore the
        # upgrade.
        method = self._parser.get_method()
        wanted = b", ".join(value for name, value in self._headers if name == b"upgrade").lower()
        if method == b"CONNECT" or b"websocket" in wanted:
            what = "tunnels" if method == b"CONNECT" else "WebSockets"
            message = f"This service does not support {what}; call its endpoints with GET and POST."
            return Malformed(status.NOT_IMPLEMENTED, "upgrade-not-supported", message)
        lines = [b"%b %b HTTP/%b" % (method, self._url, self._parser.get_http_version().encode())]
        lines += [b"%b: %b" % pair for pair in self._headers if pair[0] not in (b"upgrade", b"connection")]
        self._parser = self._new_parser()
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _measure(self, *, head: bool, message: bool) -> Malformed | None:
        """Enforce the limits on a message that arrives in pieces: the parser buffers parts it has not reported yet."""
        limits = self._limits
        if head:
            self._head += self._piece
            if self._head > limits.head:
                return self._head_too_large()
        elif message and self._form is None:
            self._size += self._piece
            if self._size > limits.head + OVERHEAD * limits.body:
                return self._too_large()
        return None

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._in_message = self._in_head = True
        self._begun_here += 1
        self._begun = self._piece
        self._head = self._size = 0
        self._release_message()
        self._watched = {}

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > self._limits.line:
            self._abandon(Malformed(414, "target-too-long", f"The target is longer than {self._limits.line} bytes."))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle one header. Trailers, which come after the body, are dropped."""
        if self._in_head:
            # A header of four bytes takes two hundred once it is parsed, so the head is not read to its end first.
            if len(self._headers) >= self._limits.headers:
                message = f"The request has more than {self._limits.headers} headers."
                self._abandon(Malformed(431, "head-too-large", message))
            name = name.lower()
            self._headers.append((name, value))
            if name in _WATCHED:
                before = self._watched.get(name)
                self._watched[name] = value if before is None else b"%b, %b" % (before, value)

    def on_headers_complete(self) -> None:
        """Handle the end of the head: refuse everything that the head alone can decide."""
        self._in_head = False
        fault = self._judge_size() or self._judge_framing() or self._begin_form()
        if fault is None and self._form is None and int(self._watched.get(b"content-length", b"0")) > self._limits.body:
            fault = self._too_large()
        if fault is not None:
            self._abandon(fault)
        if b"expect" in self._watched and self._parser.get_http_version() == "1.1":
            self.expects = True

    def on_body(self, body: bytes) -> None:
        if self._form is not None:
            fault = self._form.feed(body)
            if fault is not None:
                self._abandon(fault)
        elif not self._body:
            self._body = body
        else:
            if type(self._body) is bytes:
                # One buffer: chunks of two bytes would take fifty each in a list.
                self._body = bytearray(self._body)
            self._body += body
        if len(self._body) > self._limits.body:
            self._abandon(self._too_large())

    def on_message_complete(self) -> None:
        self._in_message = self.expects = False
        parser = self._parser
        if parser.should_upgrade():
            return  # it is handled outside the parser
        version = parser.get_http_version()
        path, query = split_target(self._url)
        if self._url[:1] not in (b"/", b"*"):
            # RFC 9112 3.2.2: the host of an absolute URL overrides `Host`.
            host = _before_path(self._url.decode("latin-1")).partition("://")[2].encode("latin-1")
            self._headers = [(b"host", host), *(pair for pair in self._headers if pair[0] != b"host")]
        headers = read_headers(self._headers, self._limits.headers)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        wants = not isinstance(headers, Malformed) and stream_type(headers) is not None
        method = parser.get_method().decode("ascii")
        head = HttpHead(method, path, query, version, self._headers, headers, keep_alive, wants)
        form, self._form, self._unnoticed = self._form, None, 0
        fault = None if form is None else form.finish()
        if fault is not None:
            self._abandon(fault)
        self._events.append(Asked(head, bytes(self._body), form))
        self._release_message()

    def _abandon(self, fault: Malformed) -> NoReturn:
        self._refused = fault
        raise _Abandoned

    def _judge_size(self) -> Malformed | None:
        limits = self._limits
        if self._begun + self._head + self._piece > limits.head:
            size = len(self._url) + sum([len(name) + len(value) + 4 for name, value in self._headers])
            if size > limits.head:
                return self._head_too_large()
        return None

    def _judge_framing(self) -> Malformed | None:
        watched = self._watched
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            return Malformed(505, "version-not-supported", f"This server supports HTTP/1.1, not HTTP/{version}.")
        if b"host" not in watched and version == "1.1":
            return Malformed(status.BAD_REQUEST, "host-missing", "An HTTP/1.1 request requires a Host header.")
        if watched.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            message = "The body has a transfer encoding other than chunked; remove it."
            return Malformed(status.NOT_IMPLEMENTED, "transfer-encoding-not-supported", message)
        if watched.get(b"expect", b"100-continue").lower() != b"100-continue":
            return Malformed(417, "expectation-failed", "The only supported expectation is 100-continue.")
        return None

    def _begin_form(self) -> Malformed | None:
        if self._open_form is None or not any(
            name == b"content-type" and value[:10].lower() == b"multipart/" for name, value in self._headers
        ):
            return None
        headers = read_headers(self._headers, self._limits.headers)
        if isinstance(headers, Malformed):
            return headers
        found = self._open_form(self._parser.get_method().decode("ascii"), split_target(self._url)[0], headers)
        if isinstance(found, Malformed):
            return found
        self._form = found
        return None

    def _head_too_large(self) -> Malformed:
        return Malformed(431, "head-too-large", f"The head is larger than {self._limits.head} bytes.")

    def _too_large(self) -> Malformed:
        message = f"The body is larger than {self._limits.body} bytes."
        return Malformed(status.CONTENT_TOO_LARGE, "content-too-large", message)


def split_target(target: bytes) -> tuple[str, str]:
    """Split a target into path and query; requests to a proxy may have an absolute URL."""
    text = target.decode("latin-1")
    if not text.startswith(("/", "*")):
        text = text[len(_before_path(text)) :]
    path, _, query = text.partition("?")
    return path or "/", query


def _before_path(address: str) -> str:
    start = address.find("://") + 3
    return address[:start] + re.split("[/?]", address[start:], maxsplit=1)[0]
