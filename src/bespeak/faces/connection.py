"""The server's end of one connection of any protocol: ordering, batching, back-pressure, deadlines, closing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from bespeak.faces.limits import UNCOUNTED, Capacity, Timeouts
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.tls import peer_certificate
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Pause
from bespeak.runtime.concurrency import Pace

Rest = Coroutine[Any, Any, None]
Step = Callable[[], Rest | None]  # runs as far as it can at once, returns the coroutine of the rest, never raises
PARKED: Final = 64  # Number of parked tasks to keep. Tasks beyond it end after their step.


class TaskPool:
    """Runs steps, each in a task that no other unfinished step uses."""

    __slots__ = ("_context", "_draining", "_loop", "_parked", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._context = copy_context()
        self._parked: list[_Worker] = []
        self._draining = False
        self.waiting: set[asyncio.Task[None]] = set()  # tasks that run a step or wait for the rest of one

    def run(self, step: Step) -> None:
        """Run a step now; if no task is parked, or another one is running, run it soon in a new task."""
        parked = self._parked
        while parked and parked[-1].wake.done():
            parked.pop()  # a handler that has ended cancelled its task, which is about to end too
        if not parked:
            self._spawn(step)
            return
        worker = parked[-1]
        try:
            _enter_task(self._loop, worker.task)
        except RuntimeError:  # called inside another task
            self._spawn(step)
            return
        try:
            rest = step()
        finally:
            _leave_task(self._loop, worker.task)
        if rest is not None:
            parked.pop()
            self.waiting.add(worker.task)
            worker.take_over(rest)

    def drain(self) -> None:
        """Park no more tasks: from now on each ends with its step, so that one can wait for those in `waiting`."""
        self._draining = True

    def cancel(self) -> None:
        for task in self.waiting:
            task.cancel()

    def close(self) -> None:
        """End the parked tasks. Waiting steps continue."""
        for worker in self._parked:
            worker.task.cancel()

    def _spawn(self, step: Step) -> None:
        # Use the pool's context: the caller's may hold variables of another request.
        task = self._loop.create_task(self._run_worker(step), context=self._context.copy())
        self.waiting.add(task)
        task.add_done_callback(self.waiting.discard)

    async def _run_worker(self, step: Step) -> None:
        task = asyncio.current_task(self._loop)
        assert task is not None
        rest = step()
        del step  # a parked task must not keep the connection of its first step alive
        while True:
            if rest is not None:
                await rest
                rest = None
            # A step that ignored a cancellation leaves the task marked, which would cancel later steps.
            if self._draining or task.cancelling() or len(self._parked) >= PARKED:
                return
            worker = _Worker(task, self._loop.create_future())
            self._parked.append(worker)
            self.waiting.discard(task)
            try:
                await worker.wake
            except asyncio.CancelledError:
                if worker.rest is None:
                    # The pool is closing, or a finished handler had leaked its task.
                    if worker in self._parked:
                        self._parked.remove(worker)
                    raise
                # A timeout of zero expired after the step began: it applies to the rest of the step.
                task.uncancel()
                task.cancel()
            rest = worker.rest


@dataclass(slots=True, eq=False)
class _Worker:
    task: asyncio.Task[None]
    wake: asyncio.Future[None]
    rest: Rest | None = None

    def take_over(self, rest: Rest) -> None:
        self.rest = rest
        if not self.wake.done():  # else it was cancelled by the step itself
            self.wake.set_result(None)


RequestT_co = TypeVar("RequestT_co", covariant=True)
_logger = logging.getLogger(__name__)
INPUT_BOUND: Final = 65536  # buffered bytes of further requests while one is answered, above which reading pauses
BATCH_BYTES: Final = 65536
BATCH_ANSWERS: Final = 64  # answers to pipelined requests written together, before other connections get their turn
LARGE: Final = 262_144  # bytes of an answer after which the next request of the connection waits for its turn
RequestT = TypeVar("RequestT")


class RequestParser(Protocol[RequestT_co]):
    """The parser of a face: bytes in, requests out; no sockets, no clocks."""

    @property
    def buffered(self) -> int: ...  # bytes received and not yet returned; 0 between two requests
    @property
    def held(self) -> int: ...  # bytes of memory that they take

    def discard(self) -> None: ...  # release them; no more data is read
    def receive_data(self, data: bytes) -> None: ...
    def receive_eof(self) -> None: ...  # the peer sends no more data
    def next_event(self) -> RequestT_co | Malformed | Pause: ...  # a Malformed is the fault that ended reading


class Shared:
    __slots__ = (
        *("capacity", "connections", "draining", "gone", "idle_until", "now"),
        *("orphans", "pace", "pending", "pool", "timeouts", "unwritten"),
    )

    def __init__(self, timeouts: Timeouts, pool: TaskPool, capacity: Capacity) -> None:
        self.timeouts = timeouts
        self.capacity = capacity
        self.pool = pool
        self.connections: set[FaceConnection[Any]] = set()
        self.pending: set[FaceConnection[Any]] = set()  # connections whose TLS handshake is in progress
        self.pace = Pace()  # turns of connections with large answers
        self.orphans = 0  # requests that continue after their peer has disconnected
        self.gone = asyncio.Event()  # event that is set whenever a connection ends
        self.unwritten: list[FaceConnection[Any]] = []
        self.draining = False
        self.now = 0.0  # loop time of the last deadline check: cheap to read, and precise enough for a timeout
        self.idle_until = math.inf

    @property
    def count(self) -> int:
        """Number of admitted connections, TLS handshakes and requests of disconnected peers included."""
        return len(self.connections) + len(self.pending) + self.orphans

    def write_soon(self, connection: FaceConnection[Any]) -> None:
        """Write after this loop iteration, together with others: a quarter cheaper. A single connection writes now."""
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
        *("_answers", "_busy", "_counted", "_current", "_ended", "_held", "_large", "_leaving", "_loop", "_lost"),
        *("_paused", "_pending", "_reading", "_since", "_unsent", "_waiting", "_writable"),
        *("closing", "deadline", "overflow", "peer", "reader", "shared", "transport"),
    )
    transport: asyncio.Transport
    peer: Connection

    def __init__(self, shared: Shared, reader: RequestParser[RequestT], loop: asyncio.AbstractEventLoop) -> None:
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
        self._large = False  # the last answer was large
        self._held = False  # reading is paused: the peer sends faster than it is answered
        self._ended = False  # the peer sends no more data
        self._leaving = False  # no more reading or answering
        self._lost = False
        self._writable: asyncio.Event | None = None  # set when a part of an answer that waits may be written
        self._counted = 0  # bytes that the shared budget knows of
        self._current = 0  # those of them that belong to the request being answered
        self.overflow: Malformed | None = None  # refusal of a connection above the limit: sent at once, nothing is read
        self.closing = False  # True if `answer` has decided to close the connection after its answer
        self.deadline = math.inf

    # Implemented by a face.

    def begin(self, peer: Connection) -> None:
        self.peer = peer

    def answer(self, request: RequestT) -> bytes | Coroutine[Any, Any, bytes]:
        """Answer a request; return a coroutine only if the answer has to be awaited."""
        raise NotImplementedError

    def refuse(self, fault: Malformed) -> bytes:
        """Answer a message that could not be parsed."""
        raise NotImplementedError

    def end_stream(self) -> None:
        """End an answer that is sent in parts and might last for ever: its reader leaves, or the server stops."""

    # Callbacks of the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        tls = transport.get_extra_info("ssl_object")
        host, name = (peer[0], f"{peer[0]}:{peer[1]}") if peer else ("", "")
        certificate = None if tls is None else peer_certificate(tls)
        self.begin(Connection(peer=name, address=host, secure=tls is not None, certificate=certificate))
        self._since = self.peer.answered, self.shared.now
        self.shared.pending.discard(self)
        self.shared.connections.add(self)
        self.deadline = self.shared.now + self.shared.timeouts.idle
        if self.overflow is not None:
            self._give_up(self.overflow)
            if self not in self.shared.capacity.refused:  # others were refused since, and nobody waits for this one
                self._leave()

    def data_received(self, data: bytes) -> None:
        """Answer all complete requests, or pause reading while one is in progress."""
        if self._leaving:
            return
        self.reader.receive_data(data)
        if not (self._busy or self._paused):
            if len(data) > UNCOUNTED and not self._count():
                return
            self._busy = True
            if self._large:
                self._await_turn()
            else:
                self.shared.pool.run(self._serve)
            return
        self._count()
        if self.reader.buffered > INPUT_BOUND and not self._held:
            self._held = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Record the end of input. Over plain TCP the peer may still read; TLS has no half-close (core 1)."""
        self.end_stream()  # its readers close the connection to leave
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
        self._discard()
        shared = self.shared
        shared.capacity.answers.hold(self, 0)
        shared.capacity.refused.pop(self, None)
        shared.connections.discard(self)
        shared.orphans += self._waiting
        shared.gone.set()
        self._wake_writer()
        self.end_stream()

    def pause_writing(self) -> None:
        """Stop answering: the peer does not read its answers."""
        self._paused = True
        unsent = self.transport.get_write_buffer_size()
        if not self._leaving:
            self._unsent = unsent
            self.deadline = self.shared.now + self.shared.timeouts.write
        self.shared.capacity.answers.hold(self, unsent)

    def resume_writing(self) -> None:
        """Resume answering: the peer has caught up."""
        self._paused = False
        self.shared.capacity.answers.hold(self, 0)
        self._wake_writer()
        if self._busy:
            self.deadline = math.inf
        elif not self._leaving:
            self._proceed()

    # Calls of the server.

    def expire(self) -> None:
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
            self._give_up(Malformed(status.TIMEOUT, "request-timeout", message))
        else:
            self._leave()

    def flush(self) -> None:
        if answers := self._answers:
            self.transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            answers.clear()
            self._pending = 0

    def drain(self) -> None:
        """Close as soon as no request is in progress."""
        self.end_stream()
        if not (self._busy or self._leaving or self.reader.buffered):
            self._leave()

    # Bounds of the whole process.

    def make_room(self, patience: float) -> None:
        """Close while the server is full, if this peer has not sent one complete request in `patience` seconds."""
        answered, since = self._since
        if self.peer.answered == answered and since + patience <= self.shared.now and not (self._busy or self._leaving):
            message = f"All connections of this server are in use, and no request arrived in {patience:g} seconds."
            self._give_up(Malformed(status.UNAVAILABLE, "too-many-connections", message))
            self._leave()

    def drop_request(self) -> None:
        """Refuse the request that is being received; keep one that is being answered, without those behind it."""
        if not self._waiting:
            if not self._leaving:
                message = "Unfinished requests use all the memory that this server has for them; try again later."
                self._give_up(Malformed(status.UNAVAILABLE, "too-many-bytes", message))
        elif self.reader.held:
            self.closing = True
            self._discard()

    def drop_answers(self) -> None:
        """Disconnect a peer that does not read its answers."""
        self._leaving = True
        self.shared.capacity.answers.hold(self, 0)
        self.transport.abort()

    def _count(self) -> bool:
        """Report the bytes of requests that are incomplete or wait; return False if they had to be given up."""
        size = self._counted = self._current + self.reader.held
        self.shared.capacity.requests.hold(self, size)
        return not self._leaving

    def _discard(self) -> None:
        self.reader.discard()
        if self._counted:
            self._count()

    # Answering.

    def _proceed(self) -> None:
        if not self._leaving:
            self._busy = True
            self.shared.pool.run(self._serve)

    def _await_turn(self) -> None:
        """Answer further requests when it is the agent's turn: connections of one agent count as one."""
        self.shared.pace.start(self.peer.agent_id or self.peer.address, self._proceed)

    def _gives_way(self) -> bool:
        """Return True if the next request waits for its turn, because the last answer was large."""
        if not (self._large and self.reader.buffered):
            return False
        self._suspend()
        self._await_turn()
        return True

    def _serve(self) -> Coroutine[Any, Any, None] | None:
        """Answer complete requests; return the coroutine of the first answer that has to be awaited."""
        try:
            waiting = None if self._leaving else self._answer_all()
        except BaseException as error:  # it is reported, and is the end of this connection alone
            self._waiting = False
            self._fail(error)
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            return None
        return None if waiting is None else self._wait(waiting)

    async def _wait(self, waiting: Coroutine[Any, Any, bytes]) -> None:
        """Await an answer, then those of the following requests that have to be awaited too."""
        try:
            following: Coroutine[Any, Any, bytes] | None = waiting
            while following is not None:
                answer = await following
                following = None
                self._current = 0
                if not self._leaving:
                    self._add(answer)
                    following = None if self._gives_way() else self._answer_all()
        except BaseException as error:
            # Nobody would answer or close otherwise: a connection in which a request is answered has no deadline.
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._waiting = False
            self._current = 0
            if self._counted:
                self._count()
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
                self._waiting = True
                self._suspend()
                return answer
            self._add(answer)
            count += 1
            if self._pending > BATCH_BYTES:
                self.flush()
            if count >= BATCH_ANSWERS:
                self._suspend()
                self._loop.call_soon(self._proceed)
                return None
            if self._gives_way():
                return None
        self._leave()
        return None

    def _suspend(self) -> None:
        """Answer no further requests for now; earlier answers must not wait, and there is no deadline."""
        self.flush()
        if not self._paused:
            self.deadline = math.inf
        if self._counted:
            self._current = max(0, self._counted - self.reader.held)
        elif self.reader.buffered:
            self._count()

    def _add(self, answer: bytes) -> None:
        self.peer.answered += 1
        self._reading = False
        self._answers.append(answer)
        size = len(answer)
        self._pending += size
        self._large = size > LARGE

    async def _write_part(self, part: bytes) -> None:
        """Write a part of an answer; wait while the peer does not read. Drop it if the peer is gone."""
        if self._leaving:
            return
        self._answers.append(part)
        self.flush()
        while self._paused and not self._leaving:
            self._writable = asyncio.Event()
            await self._writable.wait()
        self._writable = None

    def _wake_writer(self) -> None:
        if self._writable is not None:
            self._writable.set()

    def _await_data(self) -> None:
        """Wait for bytes; set the read deadline if a message has begun, else the idle deadline."""
        self._busy = False
        shared = self.shared
        if self._answers:
            shared.write_soon(self)
        buffered = self.reader.buffered
        if (self._counted or buffered > UNCOUNTED) and not self._count():
            return
        if self._paused:
            return
        if not buffered:
            if shared.draining:
                self._leave()
                return
            self.deadline = shared.idle_until
        elif not self._reading:
            self._reading = True
            self.deadline = shared.now + shared.timeouts.read
        self._release()

    def _release(self) -> None:
        if self._held:
            self._held = False
            self.transport.resume_reading()

    # Closing.

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, asyncio.CancelledError):
            _logger.error("The connection from %s is closed after an error", self.peer.peer, exc_info=error)
        # Earlier requests were carried out, so their answers are still sent.
        self._leave()

    def _give_up(self, fault: Malformed) -> None:
        try:
            self._refuse(fault)
        except Exception as error:  # noqa: BLE001 - as in _serve; other connections are not affected
            self._fail(error)

    def _refuse(self, fault: Malformed) -> None:
        """Send the refusal and close later: a peer that is still sending would lose the answer."""
        self._add(self.refuse(fault))
        if self._ended:
            self._leave()
            return
        self._leaving = True
        self._busy = False
        self._discard()
        self.flush()
        self._unsent = self.transport.get_write_buffer_size()
        self.deadline = self.shared.now + self.shared.timeouts.linger
        self._release()
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the peer may have disconnected without a callback yet
                self.transport.write_eof()

    def _leave(self) -> None:
        self._busy = False
        if not self._lost:
            self._leaving = True
            self._discard()
            self.flush()
            self._unsent = self.transport.get_write_buffer_size()
            self.deadline = self.shared.now + self.shared.timeouts.write
            self.transport.close()
