"""One connection of HTTP: uvicorn's protocol, with the limits and deadlines of this server.

uvicorn can run any ASGI application. What it leaves open is closed here: how large a request may be, how long a peer
may take, how many requests it may send ahead; and what cannot be read is refused in the same form as everything else.
A request is handed on when it is whole. To the face itself it goes straight, without a task unless the answer has to
be waited for; to any other application by way of ASGI.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from bespeak.faces.http.asgi import Reply
from bespeak.faces.http.face import CLOSE, CONNECTION, HttpFace, failed
from bespeak.faces.http.reader import Asked, Heads, RequestReader
from bespeak.faces.timeouts import Timeouts
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.tls import peer_certificate

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

BURST: Final = 64
"""Requests of one connection that are answered in one go; then others have their turn."""
BATCH_BYTES: Final = 16384
"""Answers larger than this are written at once, smaller ones together."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Shared:
    """What the connections of one server share."""

    __slots__ = ("direct", "draining", "face", "gone", "heads", "max_connections", "now", "timeouts", "unwritten")

    def __init__(self, face: HttpFace, *, direct: bool, timeouts: Timeouts, max_connections: int) -> None:
        self.face = face
        self.direct = direct
        """Whether nothing stands between the server and the face."""
        self.timeouts = timeouts
        self.max_connections = max_connections
        self.heads: Heads = {}
        self.draining = False
        self.now = 0.0
        """The loop's time when the deadlines were last looked at."""
        self.gone = asyncio.Event()
        """Set whenever a connection ends."""
        self.unwritten: list[HttpConnection] = []

    def write_soon(self, connection: HttpConnection) -> None:
        """Write at the end of this turn of the loop, together with others: cheaper than between their requests."""
        if not self.unwritten:
            connection.loop.call_soon(self._write_all)
        self.unwritten.append(connection)

    def _write_all(self) -> None:
        for connection in self.unwritten:
            connection.flush()
        self.unwritten.clear()


class HttpConnection(HttpToolsProtocol):
    """Takes whole requests from the reader and answers them in order."""

    def __init__(
        self,
        shared: Shared,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = shared
        self._connection = Connection(face="http")
        self._reader = RequestReader(shared.face.limits, self._arrive, self._expect, shared.heads)
        self._ahead: deque[Asked | Malformed] = deque()  # what waits for the answer before it
        self._out: list[bytes] = []  # answers that are not written yet
        self._busy = False  # an answer is being waited for
        self._burst = 0
        self._reading = False  # a message has begun and its deadline stands
        self._expects = False  # the peer waits for leave to send a body
        self._deaf = False  # nothing more is read
        self._leaving = False  # nothing more is answered
        self._ended = False  # the peer sends no more
        self._unsent = 0
        self.deadline = math.inf

    # What the loop tells.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many."""
        super().connection_made(transport)
        shared = self._shared
        tls = transport.get_extra_info("ssl_object")
        host, port = self.client or ("", 0)
        self._connection = connection = Connection(
            face="http",
            peer=f"{host}:{port}",
            address=host,
            secure=tls is not None,
            certificate=None if tls is None else peer_certificate(tls),
        )
        connection.answered = 1  # HTTP introduces itself by documents
        self.app_state = {**self.app_state, CONNECTION: connection}
        self.deadline = shared.now + shared.timeouts.idle
        if len(self.connections) > shared.max_connections:
            reason = f"This server has its {shared.max_connections} connections in use; try again later."
            self._refuse(Malformed(status.UNAVAILABLE, "too-many-connections", reason))

    def data_received(self, data: bytes) -> None:
        """Read, answer what is whole, and watch how long the rest takes."""
        if self._deaf:
            return
        self._burst = 0
        fault = self._reader.feed(data)
        if fault is not None:
            self._refuse(fault)
            return
        if self._out:
            if len(self.connections) == 1:
                self.flush()
            else:
                self._shared.write_soon(self)
        if not self._reader.in_message:
            self._reading = False
        elif not self._reading and not self._busy:
            self._begin_reading()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The peer sends no more. Over plain TCP it may still want the answers it asked for."""
        self._ended = True
        waits = (self._busy or len(self._ahead) > 0) and not self._leaving
        return waits and not self._connection.secure

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone; a request that is being handled is still carried out."""
        super().connection_lost(exc)
        self._leaving = self._deaf = True
        self._ahead.clear()
        self._out.clear()
        self._shared.gone.set()

    def pause_writing(self) -> None:
        """The peer does not take its answers: no more are made."""
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self.deadline = self._shared.now + self._shared.timeouts.write

    def resume_writing(self) -> None:
        """The peer has caught up."""
        super().resume_writing()
        if self._busy:
            self.deadline = math.inf
        elif not self._leaving:
            self._proceed()

    # What the server tells.

    def expire(self) -> None:
        """The deadline has passed."""
        shared = self._shared
        if self._leaving:
            self.transport.abort()
        elif self.flow.write_paused:
            unsent = self.transport.get_write_buffer_size()
            if unsent >= self._unsent:
                self.transport.abort()
            self._unsent = unsent
            self.deadline = shared.now + shared.timeouts.write
        elif self._reader.in_message:
            seconds = shared.timeouts.read
            message = f"The request was not complete after {seconds:g} seconds."
            self._refuse(Malformed(status.TIMEOUT, "request-timeout", message))
        else:
            self._leave()

    def shutdown(self) -> None:
        """Close as soon as nothing is under way."""
        if self._busy and not self._shared.direct:
            self.cycle.keep_alive = False
        if not (self._busy or self._ahead or self._reader.in_message or self._leaving):
            self._leave()

    # What the reader tells.

    def _expect(self) -> None:
        """A peer wants to know whether it may send the body of a request; one that waits is told in its turn."""
        self._expects = True
        if not (self._busy or self._ahead):
            self._give_leave()

    def _give_leave(self) -> None:
        self._expects = False
        self.flush()
        self.transport.write(_CONTINUE)

    def _arrive(self, asked: Asked) -> None:
        self._reading = self._expects = False
        if self._leaving:
            return  # it was sent behind one that ends the connection
        if self._busy or self._ahead or self.flow.write_paused:
            self._ahead.append(asked)
            self.flow.pause_reading()
        else:
            self._take(asked)

    def _begin_reading(self) -> None:
        self._reading = True
        self.deadline = self._shared.now + self._shared.timeouts.read

    # Answering.

    def _take(self, asked: Asked | Malformed) -> None:
        """Answer a request, or begin to."""
        if isinstance(asked, Malformed):
            self._refuse_now(asked)
        elif self._shared.direct:
            self._ask_face(asked)
        else:
            self._run_application(asked)

    def _ask_face(self, asked: Asked) -> None:
        try:
            answer = self._answer(asked)
        except Exception as error:  # noqa: BLE001 - it is reported, and the peer gets an answer whatever it was
            answer = failed(error)
        if not isinstance(answer, Reply):
            self._occupy()
            task = self.loop.create_task(self._wait(answer, asked))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            return
        self._write(answer, asked)
        self._burst += 1
        if self._burst >= BURST:
            self._occupy()
            self.loop.call_soon(self._proceed)

    def _answer(self, asked: Asked) -> Reply | Coroutine[Any, Any, Reply]:
        """The face's answer. The caller is the peer: where a proxy speaks for others, the way is another one."""
        face, connection = self._shared.face, self._connection
        head, body = asked
        headers = head.headers
        if isinstance(headers, Malformed):
            return face.malformed(headers, connection)
        headers = headers.copy()  # the head may be that of many requests
        found = face.admit(head.http_method, head.path, headers)
        return found if isinstance(found, Reply) else face.call(found, head.query, headers, body, connection)

    async def _wait(self, answer: Coroutine[Any, Any, Reply], asked: Asked) -> None:
        try:
            reply = await answer
        except Exception as error:  # noqa: BLE001 - as above
            reply = failed(error)
        if not self._leaving:
            self._write(reply, asked)
            self._proceed()

    def _run_application(self, asked: Asked) -> None:
        """Hand a request to the application by way of ASGI; the body is there already."""
        head = asked.head
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": head.version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "method": head.http_method,
            "root_path": "",
            "path": unquote(head.path),
            "raw_path": head.path.encode("latin-1"),
            "query_string": head.query.encode("latin-1"),
            "headers": list(head.pairs),
            "state": self.app_state.copy(),
            "extensions": {},
        }
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=head.keep_alive and not self._shared.draining,
            on_response=self._proceed,
        )
        self.cycle.body = bytearray(asked.body)
        self.cycle.more_body = False
        self.cycle.message_event.set()
        self._occupy()
        self._start_asgi_task(self.cycle, self.app)

    def _occupy(self) -> None:
        """Nothing else is answered until this is."""
        self.flush()
        self._busy = True
        if not self.flow.write_paused:
            self.deadline = math.inf

    def _proceed(self) -> None:
        """Go on with what waits behind an answer that took its time."""
        self._busy = False
        self._burst = 0
        while self._ahead and not (self._busy or self._leaving or self.flow.write_paused):
            self._take(self._ahead.popleft())
        self.flush()
        if self._busy or self._leaving or self._ahead:
            return
        if self._ended or (self._shared.draining and not self._reader.in_message):
            self._leave()
            return
        self.flow.resume_reading()
        if not self._reader.in_message:
            self.deadline = self._shared.now + self._shared.timeouts.idle
            return
        if self._expects:
            self._give_leave()
        self._begin_reading()

    def _write(self, reply: Reply, asked: Asked) -> None:
        """Put an answer into bytes; it leaves with the others of its batch."""
        closes = not asked.head.keep_alive or self._shared.draining
        if reply.status >= 400 and CLOSE in reply.headers:
            reply.headers.remove(CLOSE)
            closes = True
        self._out.append(self._encode(reply, body=asked.head.http_method != "HEAD", closes=closes))
        if closes:
            self._leave()
        elif len(reply.body) > BATCH_BYTES:
            self.flush()

    def _encode(self, reply: Reply, *, body: bool, closes: bool) -> bytes:
        parts = [STATUS_LINE[reply.status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        for name, value in reply.headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"connection: close\r\n\r\n" if closes else b"\r\n")
        if body:
            parts.append(reply.body)
        return b"".join(parts)

    def flush(self) -> None:
        """Write the answers there are."""
        if self._out:
            self.transport.write(b"".join(self._out))
            self._out.clear()
            if not (self.flow.write_paused or self._leaving or self._reading):
                self.deadline = self._shared.now + self._shared.timeouts.idle

    # Leaving.

    def _refuse(self, fault: Malformed) -> None:
        """Refuse what was read, behind the answers that are still due; nothing more is read."""
        if self._leaving:
            return
        self._deaf = True
        if self._busy or self._ahead:
            self._ahead.append(fault)
            self.flow.pause_reading()
        else:
            self._refuse_now(fault)

    def _refuse_now(self, fault: Malformed) -> None:
        """Say what is wrong and close; a peer that is still sending would lose the answer if that were at once."""
        try:
            reply = self._shared.face.malformed(fault, self._connection)
        except Exception as error:  # noqa: BLE001 - as above
            reply = failed(error)
        self._out.append(self._encode(reply, body=True, closes=False))
        self._leaving = self._deaf = True
        self.flush()
        self.deadline = self._shared.now + self._shared.timeouts.linger
        self.flow.resume_reading()
        if self._ended:
            self.transport.close()
        elif self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the peer may be gone, and the loop has not told yet
                self.transport.write_eof()

    def _leave(self) -> None:
        """Close, once what was written has gone out."""
        self._leaving = self._deaf = True
        self.flush()
        self.deadline = self._shared.now + self._shared.timeouts.write
        self.transport.close()
