"""The server's end of one connection of any protocol: ordering, batching, back-pressure, deadlines, closing.

A face adds a reader (bytes to requests) and an `answer` (request to bytes). A connection has no task of its own.
Requests are answered inside `data_received`, in the name of a parked task of the pool, and only an answer that has to
be awaited occupies a task.
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
"""Limit of buffered bytes of further requests while one is being answered. Beyond it, reading from the peer pauses."""
BATCH_BYTES: Final = 65536
BATCH_ANSWERS: Final = 64
"""Number of answers to pipelined requests written together. After that, other connections get their turn."""

RequestT = TypeVar("RequestT")
RequestT_co = TypeVar("RequestT_co", covariant=True)


class Reader(Protocol[RequestT_co]):
    """The parser of a face: bytes in, requests out; no sockets, no clocks."""

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned; 0 between two requests."""
        ...

    def receive_data(self, data: bytes) -> None:
        """Add bytes received from the peer."""
        ...

    def receive_eof(self) -> None:
        """Record that the peer sends no more data."""
        ...

    def next_event(self) -> RequestT_co | Malformed | Pause:
        """Return the next complete request, the fault that ended reading, or a Pause."""
        ...


class Shared:
    """State shared by the connections of one server."""

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
        """Connections whose TLS handshake is in progress."""
        self.orphans = 0
        """Requests that continue after their peer has disconnected."""
        self.gone = asyncio.Event()
        """Event that is set whenever a connection ends."""
        self.unwritten: list[FaceConnection[Any]] = []
        self.draining = False
        self.now = 0.0
        """Loop time of the last deadline check: cheap to read, and precise enough for a timeout."""
        self.idle_until = math.inf

    def write_soon(self, connection: FaceConnection[Any]) -> None:
        """Write at the end of this loop iteration, together with others: measured a quarter cheaper per request.

        If there is only one connection, write at once.
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
    """Takes complete requests from its reader, answers them in order and writes the answers of a batch together."""

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
        self._busy = False  # requests are being answered, or are scheduled to be
        self._waiting = False  # an answer is being awaited
        self._reading = False  # a message has begun, with a deadline
        self._paused = False  # the peer does not read its answers
        self._unsent = 0  # unread bytes at the last check
        self._held = False  # reading is paused: the peer sends faster than it is answered
        self._ended = False  # the peer sends no more data
        self._leaving = False  # no more reading or answering
        self._lost = False
        self.closing = False
        """True if `answer` has decided to close the connection after its answer."""
        self.deadline = math.inf

    # Implemented by a face.

    def begin(self, peer: Connection) -> None:
        """Record the peer's address and certificate."""
        self.peer = peer

    def answer(self, request: RequestT) -> bytes | Coroutine[Any, Any, bytes]:
        """Answer a request; return a coroutine only if the answer has to be awaited."""
        raise NotImplementedError

    def refuse(self, fault: Malformed) -> bytes:
        """Answer a message that could not be parsed."""
        raise NotImplementedError

    # Callbacks of the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start waiting for requests."""
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
        """Answer all complete requests, or pause reading while one is in progress."""
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
        """Record the end of input. Over plain TCP the peer may still read its answers; TLS has no half-close (core
        1).
        """
        if self._leaving:
            return False
        self._ended = True
        self.reader.receive_eof()
        if not (self._busy or self._paused):
            self._proceed()
        return not (self.peer.secure or self._leaving)

    def connection_lost(self, error: Exception | None) -> None:
        """Drop the peer; a request in progress is still carried out."""
        self._lost = self._leaving = True
        self._answers.clear()
        shared = self.shared
        shared.connections.discard(self)
        shared.orphans += self._waiting
        shared.gone.set()

    def pause_writing(self) -> None:
        """Stop answering: the peer does not read its answers."""
        self._paused = True
        if not self._leaving:
            self._unsent = self.transport.get_write_buffer_size()
            self.deadline = self.shared.now + self.shared.timeouts.write

    def resume_writing(self) -> None:
        """Resume answering: the peer has caught up."""
        self._paused = False
        if self._busy:
            self.deadline = math.inf
        elif not self._leaving:
            self._proceed()

    # Calls of the server.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        shared = self.shared
        if self._leaving or self._paused:
            unsent = self.transport.get_write_buffer_size()
            if not unsent or unsent >= self._unsent:
                self.transport.abort()
            self._unsent = unsent
            self.deadline = shared.now + shared.timeouts.write
        elif self._busy:
            self.deadline = math.inf
        elif self.reader.buffered:
            seconds = shared.timeouts.read
            message = f"The request was not complete after {seconds:g} seconds."
            try:
                self._refuse(Malformed(status.TIMEOUT, "request-timeout", message))
            except Exception as error:  # noqa: BLE001 - as in _serve; the other deadlines stay in force
                self._fail(error)
        else:
            self._leave()

    def flush(self) -> None:
        """Write the pending answers."""
        answers = self._answers
        if answers:
            self.transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            answers.clear()
            self._pending = 0

    def drain(self) -> None:
        """Close as soon as no request is in progress."""
        if not (self._busy or self._leaving or self.reader.buffered):
            self._leave()

    # Answering.

    def _proceed(self) -> None:
        if not self._leaving:
            self._busy = True
            self.shared.pool.run(self._serve)

    def _serve(self) -> Coroutine[Any, Any, None] | None:
        """Answer complete requests; return the coroutine of the first answer that has to be awaited."""
        try:
            waiting = None if self._leaving else self._answer_all()
        except BaseException as error:  # it is reported, and is the end of this connection alone
            self._fail(error)
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            return None
        if waiting is None:
            return None
        self._waiting = True
        return self._wait(waiting)

    async def _wait(self, waiting: Coroutine[Any, Any, bytes]) -> None:
        """Await an answer, then those of the following requests that have to be awaited too."""
        try:
            following: Coroutine[Any, Any, bytes] | None = waiting
            while following is not None:
                answer = await following
                following = None
                if not self._leaving:
                    self._add(answer)
                    following = self._answer_all()
        except BaseException as error:
            # Nobody would answer or close otherwise: a connection in which a request is answered has no deadline.
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._waiting = False
            self.shared.orphans -= self._lost

    def _answer_all(self) -> Coroutine[Any, Any, bytes] | None:
        """Answer requests one by one; stop at an answer that has to be awaited, and return it."""
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
                # Earlier answers must not wait with it.
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
                if not self._paused:
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
        """Wait for bytes; set the read deadline if a message has begun, else the idle deadline."""
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
        """Resume reading from the peer."""
        if self._held:
            self._held = False
            self.transport.resume_reading()

    # Closing.

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, asyncio.CancelledError):
            _logger.error("The connection from %s is closed after an error", self.peer.peer, exc_info=error)
        # Earlier requests were carried out, so their answers are still sent.
        self._leave()

    def _refuse(self, fault: Malformed) -> None:
        """Send the refusal and close. Closing is delayed, because a peer that is still sending would lose the
        answer.
        """
        self._add(self.refuse(fault))
        if self._ended:
            self._leave()
            return
        self._leaving = True
        self._busy = False
        self.flush()
        self._unsent = self.transport.get_write_buffer_size()
        self.deadline = self.shared.now + self.shared.timeouts.linger
        self._release()
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the peer may have disconnected without a callback yet
                self.transport.write_eof()

    def _leave(self) -> None:
        """Close once all written bytes have been sent."""
        self._busy = False
        if not self._lost:
            self._leaving = True
            self.flush()
            self._unsent = self.transport.get_write_buffer_size()
            self.deadline = self.shared.now + self.shared.timeouts.write
            self.transport.close()
