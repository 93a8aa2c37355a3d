"""The server's end of one connection, whatever is spoken on it: order, batches, back-pressure, deadlines, leaving.

A face adds a reader (bytes to requests) and an `answer` (request to bytes). There is no task for a connection. Requests
are answered inside `data_received`, in the name of a parked task of the pool, and a task is used up only by an answer
that has to be waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Coroutine
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from bespeak.faces.task_pool import TaskPool
from bespeak.faces.timeouts import Timeouts
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.tls import peer_certificate
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Pause

_logger = logging.getLogger(__name__)

INPUT_BOUND: Final = 65536
"""Bytes of further requests that are buffered while one is being answered. Then the peer has to wait."""
BATCH_BYTES: Final = 65536
BATCH_ANSWERS: Final = 64
"""Answers to pipelined requests that are written together. Then other connections have their turn."""

RequestT = TypeVar("RequestT")
RequestT_co = TypeVar("RequestT_co", covariant=True)


class Reader(Protocol[RequestT_co]):
    """What a face reads with: knows no sockets and no clocks."""

    @property
    def buffered(self) -> int:
        """Bytes received and not yet given out; 0 between two requests."""
        ...

    def receive_data(self, data: bytes) -> None:
        """Add bytes as they came from the peer."""
        ...

    def receive_eof(self) -> None:
        """Note that the peer will send no more."""
        ...

    def next_event(self) -> RequestT_co | Malformed | Pause:
        """Return the next whole request, the fault that ended the reading, or why there is neither."""
        ...


class Shared:
    """What the connections of one server share."""

    __slots__ = (
        "connections",
        "draining",
        "gone",
        "idle_until",
        "now",
        "orphans",
        "pending",
        "pool",
        "timeouts",
        "unwritten",
    )

    def __init__(self, timeouts: Timeouts, pool: TaskPool) -> None:
        self.timeouts = timeouts
        self.pool = pool
        self.connections: set[FaceConnection[Any]] = set()
        self.pending: set[FaceConnection[Any]] = set()
        """Connections whose handshake is under way."""
        self.orphans = 0
        """Requests that are carried out although their peer is gone."""
        self.gone = asyncio.Event()
        """Set whenever a connection ends."""
        self.unwritten: list[FaceConnection[Any]] = []
        self.draining = False
        self.now = 0.0
        """The loop's time when the deadlines were last looked at: cheap, and exact enough for a timeout."""
        self.idle_until = math.inf

    def write_soon(self, connection: FaceConnection[Any]) -> None:
        """Write at the end of this turn of the loop, together with others: measured a quarter cheaper per request.

        A connection that is alone has nobody to wait for.
        """
        if len(self.connections) == 1:
            connection.flush()
            return
        if not self.unwritten:
            asyncio.get_running_loop().call_soon(self._write_all)
        self.unwritten.append(connection)

    def _write_all(self) -> None:
        for connection in self.unwritten:
            connection.flush()
        self.unwritten.clear()


class FaceConnection(asyncio.Protocol, Generic[RequestT]):
    """Takes whole requests from its reader, answers them in order and writes the answers of a batch at once."""

    __slots__ = (
        "_answers",
        "_busy",
        "_ended",
        "_held",
        "_leaving",
        "_loop",
        "_lost",
        "_paused",
        "_pending",
        "_reading",
        "_unsent",
        "_waiting",
        "closing",
        "deadline",
        "peer",
        "reader",
        "shared",
        "transport",
    )

    transport: asyncio.Transport
    peer: Connection

    def __init__(self, shared: Shared, reader: Reader[RequestT], loop: asyncio.AbstractEventLoop) -> None:
        self.shared = shared
        self.reader = reader
        self._loop = loop
        self._answers: list[bytes] = []
        self._pending = 0  # bytes in _answers
        self._busy = False  # requests are being answered, or will be in a moment
        self._waiting = False  # an answer is being waited for
        self._reading = False  # a message has begun and its deadline stands
        self._paused = False  # the peer does not take its answers
        self._unsent = 0  # bytes that it had not taken when that was last looked at
        self._held = False  # the peer is held back: it sends faster than it is answered
        self._ended = False  # the peer sends no more
        self._leaving = False  # nothing more is read or answered
        self._lost = False
        self.closing = False
        """Set by `answer` where the connection ends with it."""
        self.deadline = math.inf

    # What a face adds.

    def begin(self, peer: Connection) -> None:
        """Take note of who is at the other end."""
        self.peer = peer

    def answer(self, request: RequestT) -> bytes | Coroutine[Any, Any, bytes]:
        """Answer a request; a coroutine only for an answer that has to be waited for."""
        raise NotImplementedError

    def refuse(self, fault: Malformed) -> bytes:
        """Answer what could not be read."""
        raise NotImplementedError

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for requests."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        tls = transport.get_extra_info("ssl_object")
        host, port = peer[:2] if peer else ("", 0)
        self.begin(
            Connection(
                peer=f"{host}:{port}" if peer else "",
                address=host,
                secure=tls is not None,
                certificate=None if tls is None else peer_certificate(tls),
            )
        )
        self.shared.pending.discard(self)
        self.shared.connections.add(self)
        self.deadline = self.shared.now + self.shared.timeouts.idle

    def data_received(self, data: bytes) -> None:
        """Answer what is whole now, or hold the peer back while it has to wait."""
        if self._leaving:
            return
        self.reader.receive_data(data)
        if not (self._busy or self._paused):
            self._busy = True
            self.shared.pool.run(self._serve)
        elif self.reader.buffered > INPUT_BOUND and not self._held:
            self._held = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Note the end. Over plain TCP the peer may still want its answers; TLS has no half-close (core 1)."""
        if self._leaving:
            return False
        self._ended = True
        self.reader.receive_eof()
        if not (self._busy or self._paused):
            self._proceed()
        return not (self.peer.secure or self._leaving)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the peer; a request that is being handled is still carried out."""
        self._lost = self._leaving = True
        self._answers.clear()
        shared = self.shared
        shared.connections.discard(self)
        shared.orphans += self._waiting
        shared.gone.set()

    def pause_writing(self) -> None:
        """Make no more answers: the peer does not take those it has."""
        self._paused = True
        if not self._leaving:
            self._unsent = self.transport.get_write_buffer_size()
            self.deadline = self.shared.now + self.shared.timeouts.write

    def resume_writing(self) -> None:
        """Go on: the peer has caught up."""
        self._paused = False
        if self._busy:
            self.deadline = math.inf
        elif not self._leaving:
            self._proceed()

    # What the server tells.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        shared = self.shared
        if self._leaving:
            self.transport.abort()
        elif self._paused:
            unsent = self.transport.get_write_buffer_size()
            if unsent >= self._unsent:
                self.transport.abort()
            self._unsent = unsent
            self.deadline = shared.now + shared.timeouts.write
        elif self._busy:
            self.deadline = math.inf
        elif self.reader.buffered:
            seconds = shared.timeouts.read
            message = f"The request was not complete after {seconds:g} seconds."
            self._refuse(Malformed(status.TIMEOUT, "request-timeout", message))
        else:
            self._leave()

    def flush(self) -> None:
        """Write the answers there are."""
        answers = self._answers
        if answers:
            self.transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            answers.clear()
            self._pending = 0

    def drain(self) -> None:
        """Close as soon as nothing is under way."""
        if not (self._busy or self._leaving or self.reader.buffered):
            self._leave()

    # Answering.

    def _proceed(self) -> None:
        if not self._leaving:
            self._busy = True
            self.shared.pool.run(self._serve)

    def _serve(self) -> Coroutine[Any, Any, None] | None:
        """Answer what is whole; return the rest if an answer has to be waited for."""
        try:
            waiting = None if self._leaving else self._answer_all()
        except Exception:  # noqa: BLE001 - it is reported, and is the end of this connection alone
            self._fail()
            return None
        if waiting is None:
            return None
        self._waiting = True
        return self._wait(waiting)

    async def _wait(self, waiting: Coroutine[Any, Any, bytes]) -> None:
        """Wait for an answer, and for those behind it that have to be waited for as well."""
        try:
            following: Coroutine[Any, Any, bytes] | None = waiting
            while following is not None:
                answer = await following
                following = None
                if not self._leaving:
                    self._add(answer)
                    following = self._answer_all()
        except Exception:  # noqa: BLE001 - as above
            self._fail()
        finally:
            self._waiting = False
            self.shared.orphans -= self._lost

    def _answer_all(self) -> Coroutine[Any, Any, bytes] | None:
        """Answer request after request; stop at an answer that has to be waited for, and return it."""
        next_event = self.reader.next_event
        count = 0
        while not self.closing:
            if self._paused:
                self.flush()
                self._busy = False
                return None
            event = next_event()
            if event is NEED_DATA:
                self._await_data()
                return None
            if event is CLOSED:
                break
            if isinstance(event, Malformed):
                self._refuse(event)
                return None
            answer = self.answer(event)
            if not isinstance(answer, bytes):
                # What was answered before must not wait with it.
                self.flush()
                if not self._paused:
                    self.deadline = math.inf
                return answer
            self._add(answer)
            count += 1
            if self._pending > BATCH_BYTES:
                self.flush()
            if count >= BATCH_ANSWERS:
                self.flush()
                self.deadline = math.inf
                self._loop.call_soon(self._proceed)
                return None
        self._leave()
        return None

    def _add(self, answer: bytes) -> None:
        self.peer.answered += 1
        self._reading = False
        self._answers.append(answer)
        self._pending += len(answer)

    def _await_data(self) -> None:
        """Wait for bytes; the deadline is that of the message which has begun, or that of an idle connection."""
        self._busy = False
        shared = self.shared
        if self._answers:
            shared.write_soon(self)
        if self._paused:
            return
        if not self.reader.buffered:
            if shared.draining:
                self._leave()
                return
            self.deadline = shared.idle_until
        elif not self._reading:
            self._reading = True
            self.deadline = shared.now + shared.timeouts.read
        self._release()

    def _release(self) -> None:
        """Let the peer send again."""
        if self._held:
            self._held = False
            self.transport.resume_reading()

    # Leaving.

    def _fail(self) -> None:
        _logger.exception("The connection from %s is closed after an error", self.peer.peer)
        # What was answered before was carried out, and the peer should know.
        self._leave()

    def _refuse(self, fault: Malformed) -> None:
        """Say what is wrong and close. A peer that is still sending would lose the answer if that were at once."""
        self._add(self.refuse(fault))
        if self._ended:
            self._leave()
            return
        self._leaving = True
        self._busy = False
        self.flush()
        self.deadline = self.shared.now + self.shared.timeouts.linger
        self._release()
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the peer may be gone, and the loop has not told yet
                self.transport.write_eof()

    def _leave(self) -> None:
        """Close, once what was written has gone out."""
        self._busy = False
        if not self._lost:
            self._leaving = True
            self.flush()
            self.deadline = self.shared.now + self.shared.timeouts.write
            self.transport.close()
