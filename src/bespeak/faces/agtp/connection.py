"""The server's end of one AGTP connection: a protocol that is fed by the loop and one task that answers."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Final, cast

from bespeak.faces.timeouts import Timeouts
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.messages import Connection, Malformed, Response
from bespeak.protocol.tls import peer_certificate
from bespeak.protocol.translation import to_bytes, to_malformed, to_request
from bespeak.protocol.wire.connection import ServerConnection
from bespeak.protocol.wire.limits import Limits
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, RequestMessage

_logger = logging.getLogger(__name__)

INPUT_BOUND: Final = 65536
"""Bytes of further requests that are buffered while one is being answered; then the peer has to wait."""
BATCH_BYTES: Final = 65536
BATCH_ANSWERS: Final = 64
"""Answers to pipelined requests are written together up to here; then other connections have their turn."""


class ServerState:
    """What the connections of one server share."""

    __slots__ = ("connections", "draining", "handler", "limits", "now", "timeouts", "unwritten")

    def __init__(self, handler: Handler, limits: Limits, timeouts: Timeouts) -> None:
        self.handler = handler
        self.limits = limits
        self.timeouts = timeouts
        self.connections: set[AgtpConnection] = set()
        self.unwritten: list[AgtpConnection] = []
        self.draining = False
        self.now = 0.0
        """The loop's time when the deadlines were last looked at: cheap, and exact enough for a timeout."""

    def write_soon(self, connection: AgtpConnection) -> None:
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


class AgtpConnection(asyncio.Protocol):
    """One task takes whole messages from the wire, answers them in order and writes the answers of a batch at once."""

    __slots__ = (
        "_answers",
        "_arrival",
        "_connection",
        "_ended",
        "_expired",
        "_held",
        "_leaving",
        "_loop",
        "_lost",
        "_paused",
        "_pending",
        "_reading",
        "_state",
        "_task",
        "_transport",
        "_unsent",
        "_wire",
        "_writable",
        "deadline",
    )

    def __init__(self, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._loop = loop
        self._wire = ServerConnection(state.limits)
        self._answers: list[bytes] = []
        self._pending = 0  # bytes in _answers
        self._arrival: asyncio.Future[None] | None = None  # the task waits here for bytes
        self._writable: asyncio.Future[None] | None = None  # and here for the peer to take some
        self._lost: asyncio.Future[None] = loop.create_future()
        self._paused = False
        self._ended = False  # the peer sends no more
        self._reading = False  # a message has begun and its deadline stands
        self._expired = False
        self._held = False  # the peer is held back: it sends faster than it is answered
        self._leaving = False
        self._unsent = 0
        self.deadline = math.inf

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to answer."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        tls = transport.get_extra_info("ssl_object")
        self._connection = Connection(
            peer=f"{peer[0]}:{peer[1]}" if peer else "",
            address=peer[0] if peer else "",
            secure=tls is not None,
            certificate=None if tls is None else peer_certificate(tls),
        )
        self._state.connections.add(self)
        self._task = self._loop.create_task(self._live())

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the wire and wake the task, or hold the peer back while it is busy."""
        if self._leaving:
            return
        self._wire.receive_data(data)
        if self._arrival is not None:
            self._wake()
        elif self._wire.buffered > INPUT_BOUND and not self._held:
            self._held = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The peer sends no more. Over plain TCP it may still want its answers; TLS has no half-close (core 1)."""
        if self._leaving:
            return False
        self._ended = True
        self._wire.receive_eof()
        self._wake()
        return not self._connection.secure

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone; a request that is being handled is still carried out."""
        if not self._lost.done():
            self._lost.set_result(None)
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        """The peer does not take its answers: no more are made."""
        self._paused = True

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    # What the server tells.

    @property
    def task(self) -> asyncio.Task[None]:
        """Lives as long as the connection or the request in it."""
        return self._task

    def expire(self) -> None:
        """The deadline has passed."""
        if self._leaving:
            self._transport.abort()
        elif self._writable is not None:
            unsent = self._transport.get_write_buffer_size()
            if unsent >= self._unsent:
                self._transport.abort()
            self._unsent = unsent
            self.deadline = self._state.now + self._state.timeouts.write
        else:
            self._expired = True
            self._wake()

    def flush(self) -> None:
        """Write the answers there are."""
        if self._answers:
            if not self._lost.done():
                self._transport.write(b"".join(self._answers))
            self._answers.clear()
            self._pending = 0

    def drain(self) -> None:
        """Close as soon as nothing is under way."""
        self._wake()

    def abort(self) -> None:
        """Close now, whatever is under way."""
        self._task.cancel()

    # What the task does.

    async def _live(self) -> None:
        try:
            await self._leave(await self._serve())
        except Exception:
            _logger.exception("AGTP connection from %s ended by an error", self._connection.peer)
            # What was answered before was carried out, and the peer should know.
            await self._leave(None)
        finally:
            self._transport.abort()
            self._state.connections.discard(self)

    async def _serve(self) -> Malformed | None:
        """Answer until the connection should close; a returned Malformed is still to be answered."""
        state, wire, connection = self._state, self._wire, self._connection
        handler = state.handler
        while not self._lost.done():
            event = wire.next_event()
            if isinstance(event, RequestMessage):
                self.deadline = math.inf
                answer = handler(to_request(event, connection))
                if not isinstance(answer, Response):
                    # The handler waits: what was answered before must not wait with it.
                    self.flush()
                    answer = await answer
                data = to_bytes(answer)
                connection.answered += 1
                self._reading = False
                self._answers.append(data)
                self._pending += len(data)
                if self._pending > BATCH_BYTES or len(self._answers) >= BATCH_ANSWERS:
                    self.flush()
                    await (self._until_writable() if self._paused else asyncio.sleep(0))
            elif event is NEED_DATA:
                if self._answers:
                    state.write_soon(self)
                if self._paused:
                    await self._until_writable()
                elif self._expired:
                    return self._late()
                elif state.draining and not wire.buffered:
                    return None
                else:
                    await self._until_arrival()
            elif event is CLOSED:
                return None
            else:
                return to_malformed(event)
        return None

    def _until_arrival(self) -> asyncio.Future[None]:
        """Wait for bytes; the deadline is that of the message which has begun, or that of an idle connection."""
        state = self._state
        if not self._wire.buffered:
            self.deadline = state.now + state.timeouts.idle
        elif not self._reading:
            self._reading = True
            self.deadline = state.now + state.timeouts.read
        self._release()
        self._arrival = self._loop.create_future()
        return self._arrival

    async def _until_writable(self) -> None:
        """Wait until the peer has taken what was written."""
        self._reading = False
        self._unsent = self._transport.get_write_buffer_size()
        self.deadline = self._state.now + self._state.timeouts.write
        self._writable = self._loop.create_future()
        await self._writable
        self._writable = None

    def _release(self) -> None:
        """Let the peer send again."""
        if self._held:
            self._held = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        arrival = self._arrival
        if arrival is not None:
            self._arrival = None
            if not arrival.done():
                arrival.set_result(None)

    def _late(self) -> Malformed | None:
        """What to say when time is up: nothing to an idle peer."""
        if not self._wire.buffered:
            return None
        seconds = self._state.timeouts.read
        return Malformed(408, "request-timeout", f"The request was not complete after {seconds:g} seconds.")

    async def _leave(self, malformed: Malformed | None) -> None:
        """Close. After a refusal the peer may still be sending, and closing at once would reset its connection."""
        timeouts = self._state.timeouts
        self._leaving = True
        if self._lost.done():
            return
        if malformed is not None:
            self._answers.append(to_bytes(self._state.handler.malformed(malformed, self._connection)))
        self.flush()
        if malformed is None or self._ended:
            self.deadline = self._state.now + timeouts.write
            self._transport.close()
        else:
            self.deadline = self._state.now + timeouts.linger
            self._release()
            if self._transport.can_write_eof():
                self._transport.write_eof()
        await self._lost
