"""HTTP over TCP and TLS: the server, its end of one connection, and responses sent in parts."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from email.utils import formatdate
from time import perf_counter
from typing import Any, Final, Protocol, cast, runtime_checkable
from urllib.parse import unquote

from bespeak.faces.connection import FaceConnection, Shared
from bespeak.faces.http import asgi
from bespeak.faces.http.asgi import Application, HttpResponse, Message, Receive, Scope, Send
from bespeak.faces.http.face import CLOSE, CONNECTION, GONE, READ_FORM, HttpFace, failed
from bespeak.faces.http.reader import Asked, Heads, HttpHead, HttpRequestReader
from bespeak.faces.http.translation import phrase_of
from bespeak.faces.limits import DEFAULT_TIMEOUTS, Capacity, Timeouts
from bespeak.faces.server import FaceServer
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.runtime.concurrency import Finished, begin

_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_BODILESS: Final = frozenset({204, 304})  # statuses without a body and its length (RFC 9112 6.3)
_LAST: Final = b"0\r\n\r\n"
WritePart = Callable[[bytes], Awaitable[None]]  # writes bytes to the peer; waits while it does not read
EncodeHead = Callable[[HttpResponse], bytes]  # encodes a response, here one without its body
_logger = logging.getLogger(__name__)
PROMPTED: Final = "bespeak.prompted"  # key in the scope's state: True if the application could have answered at once


class Stream(asgi.RequestBody):
    """The `receive` and `send` callables of one call of an application. A response with a length is not chunked."""

    def __init__(self, body: bytes, write: WritePart, encode: EncodeHead, *, chunked: bool) -> None:
        """Stream to a peer; without `chunked`, as in HTTP/1.0, the end of the connection is the end of the body."""
        super().__init__(body)
        self._write = write
        self._encode = encode
        self._chunked = chunked
        self._head = b""
        self.begun = False  # True if the response has begun

    async def send(self, message: Message) -> None:
        """Send a part of the response. A head without a length is sent at once: the body may take long to begin."""
        if message["type"] == "http.response.start" and not self.begun:
            headers: asgi.Headers = list(message.get("headers", ()))
            self._chunked = self._chunked and not any(name == b"content-length" for name, _ in headers)
            if message["status"] in _BODILESS:
                self._chunked = False
            self.begun = True
            head = self._encode(
                HttpResponse(message["status"], [*headers, *([_CHUNKED] if self._chunked else [])], b"")
            )
            if self._chunked:
                await self._write(head)
            else:
                self._head = head
        elif message["type"] == "http.response.body" and self.begun and not self.complete:
            part = message.get("body", b"")
            self.complete = not message.get("more_body", False)
            if self._chunked:
                part = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
                part += _LAST if self.complete else b""
            head, self._head = self._head, b""
            if head or part:
                await self._write(head + part)
        else:
            raise RuntimeError(f"The application sent an unexpected {message['type']!r}.")


@runtime_checkable
class PromptApplication(Protocol):
    """An application that answers some requests without the calls of ASGI."""

    # Answers a request, at once or by an application for it alone; returns None to be called as usual.
    def answer(self, head: HttpHead, body: bytes, peer: Connection) -> HttpResponse | Application | None: ...
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Serving:
    """State shared by the connections of one HTTP server, in addition to `Shared`."""

    __slots__ = ("app", "date", "face", "heads", "prompt", "streamed")

    def __init__(
        self, face: HttpFace, app: Application | None, streamed: Mapping[str, Application | PromptApplication] | None
    ) -> None:
        self.face = face
        self.app = app  # the middleware around the face; None if none is configured
        self.streamed = streamed or {}  # applications by path that send their responses in parts
        self.prompt = {path: app for path, app in self.streamed.items() if isinstance(app, PromptApplication)}
        """Those of them that may answer at once."""
        self.heads: Heads = {}
        self.date = b""  # the `Date` header line


class HttpConnection(FaceConnection[Asked]):
    __slots__ = ("_serving", "_stream")
    reader: HttpRequestReader

    def __init__(self, shared: Shared, serving: Serving, loop: asyncio.AbstractEventLoop) -> None:
        files = serving.face.files
        open_form = None if files is None else lambda verb, path, given: files.open_form(verb, path, given, self.peer)
        super().__init__(shared, HttpRequestReader(serving.face.limits, serving.heads, open_form), loop)
        self._serving = serving
        self._stream: Stream | None = None

    def begin(self, peer: Connection) -> None:
        """Record the peer. Over HTTP, documents introduce the server, so no answer counts as the first."""
        peer.face = "http"
        peer.answered = 1
        self.peer = peer

    def answer(self, request: Asked) -> bytes | Coroutine[Any, Any, bytes]:
        if (app := self._serving.streamed.get(request.head.path)) is not None:
            return self._answer_beside(request, app)
        if (
            request.form is not None
            or request.head.wants_stream
            or ((files := self._serving.face.files) is not None and files.streams(request.head))
        ):
            return self._send_parts(request, self._serving.app or self._serving.face, None)
        try:
            answer = self._ask_face(request) if self._serving.app is None else self._ask_application(request)
        except Exception as error:  # noqa: BLE001 - it is logged, and the peer gets an answer in any case
            answer = failed(error)
        return self._encode(answer, request) if isinstance(answer, HttpResponse) else self._wait_for(answer, request)

    def refuse(self, fault: Malformed) -> bytes:
        return encode_refusal(self._serving, fault, self.peer)

    def end_stream(self) -> None:
        if self._stream is not None:
            self._stream.gone.set()
        self._wake_writer()

    def _answer_beside(self, asked: Asked, app: Application) -> bytes | Coroutine[Any, Any, bytes]:
        prompt, found, started = self._serving.prompt.get(asked.head.path), None, perf_counter()
        if prompt is not None:
            try:
                found = prompt.answer(asked.head, asked.body, self.peer)
            except Exception as error:  # noqa: BLE001 - as in `answer`
                found = failed(error)
        if isinstance(found, HttpResponse):
            return self._encode_beside(found, asked, started)
        return self._send_parts(asked, found or app, started)

    def _encode_beside(self, reply: HttpResponse, asked: Asked, started: float | None) -> bytes:
        """Encode the answer of an application. Calls have been logged; here is what came no further.

        `started` is None for the face itself, which has logged every answer.
        """
        if reply.status >= 400 and started is not None:
            face, head = self._serving.face, asked.head
            face.log(head.http_method, head.path, reply, self.peer, started, known=True)
        return self._encode(reply, asked)

    async def _send_parts(self, asked: Asked, app: Application, started: float | None) -> bytes:
        """Let an application answer in parts; return what is left to write."""
        stream = self._stream = Stream(
            asked.body,
            self._write_part,
            functools.partial(self._encode_beside, asked=asked, started=started),
            chunked=asked.head.version == "1.1",
        )
        if asked.head.version != "1.1":
            self.closing = True
        if self._lost:
            stream.gone.set()
        try:
            scope = self._scope(asked)
            scope["state"][PROMPTED] = asked.head.path in self._serving.prompt
            scope["state"] |= {READ_FORM: asked.form, GONE: stream.gone.is_set}
            await app(scope, stream.receive, stream.send)
            if not (stream.complete or stream.gone.is_set()):
                raise RuntimeError("The application returned without a complete response.")
        except Exception as error:
            if not stream.begun:
                return self._encode(failed(error), asked)
            _logger.error("The streaming application failed", exc_info=error)
        finally:
            self._stream = None
        if not stream.complete:
            self.closing = True  # only the end of the connection tells that the response is not complete
        return b""

    def _await_data(self) -> None:
        """Wait for bytes; send 100 Continue to a peer that waits for it, in its turn."""
        if self.reader.expects and not self._paused:
            self.reader.expects = False
            self._answers.append(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.reader.progressed():
            self._reading = False
        super()._await_data()

    def _ask_face(self, asked: Asked) -> HttpResponse | Coroutine[Any, Any, HttpResponse]:
        """Call the face directly. The client is the peer: trusted proxies need middleware."""
        face, connection = self._serving.face, self.peer
        head, body, _ = asked
        headers = head.headers
        if isinstance(headers, Malformed):
            return face.malformed(headers, connection)
        headers = headers.copy()  # many requests may share the head
        started = perf_counter() if face.is_logged else 0.0
        found = face.admit(head.http_method, head.path, headers)
        if isinstance(found, HttpResponse):
            face.log(head.http_method, head.path, found, connection, started)
            return found
        return face.call(found, head.query, headers, body, connection)

    def _ask_application(self, asked: Asked) -> HttpResponse | Coroutine[Any, Any, HttpResponse]:
        app = self._serving.app
        assert app is not None
        begun = begin(asgi.call_application(app, self._scope(asked), asked.body), copy_context())
        return cast("HttpResponse", begun.value) if isinstance(begun, Finished) else begun

    def _scope(self, asked: Asked) -> Scope:
        head, transport = asked.head, self.transport
        server, client = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": head.version,
            "server": server[:2] if server else None,
            "client": client[:2] if client else None,
            "scheme": "https" if self.peer.secure else "http",
            "method": head.http_method,
            "root_path": "",
            "path": unquote(head.path),
            "raw_path": head.path.encode("latin-1"),
            "query_string": head.query.encode("latin-1"),
            "headers": list(head.pairs),
            "state": {CONNECTION: self.peer},
            "extensions": {},
        }

    async def _wait_for(self, answer: Coroutine[Any, Any, HttpResponse], asked: Asked) -> bytes:
        try:
            reply = await answer
        except Exception as error:  # noqa: BLE001 - as above
            reply = failed(error)
        return self._encode(reply, asked)

    def _encode(self, reply: HttpResponse, asked: Asked) -> bytes:
        headers = reply.headers
        closes = not asked.head.keep_alive or self.shared.draining or self.closing
        if reply.status >= 400 and CLOSE in headers:
            headers.remove(CLOSE)
            closes = True
        if closes:
            self.closing = True
            headers = [*headers, CLOSE]
        body = b"" if asked.head.http_method == "HEAD" else reply.body
        return encode_reply(self._serving, reply.status, headers, body)


def encode_refusal(serving: Serving, fault: Malformed, connection: Connection) -> bytes:
    try:
        reply = serving.face.malformed(fault, connection)
    except Exception as error:  # noqa: BLE001 - as above
        reply = failed(error)
    return encode_reply(serving, reply.status, reply.headers, reply.body)


def encode_reply(serving: Serving, number: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    return b"".join((_status_line(number), serving.date, *[b"%b: %b\r\n" % pair for pair in headers], b"\r\n", body))


@functools.lru_cache(maxsize=128)
def _status_line(number: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (number, phrase_of(number).encode())


class HttpServer(FaceServer):
    def __init__(
        self,
        face: HttpFace,
        app: Application | None = None,
        *,
        streamed: Mapping[str, Application] | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        capacity: Capacity | None = None,
    ) -> None:
        """Serve `face` behind the middleware `app`; `streamed` are applications by path that send parts."""
        super().__init__(timeouts=timeouts, capacity=capacity)
        self._serving = Serving(face, app, streamed)

    def connect(self, shared: Shared) -> HttpConnection:
        return HttpConnection(shared, self._serving, asyncio.get_running_loop())

    def refuse(self, fault: Malformed) -> bytes:
        return encode_refusal(self._serving, fault, Connection(face="http"))

    def tick(self) -> None:
        self._serving.date = b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode()
