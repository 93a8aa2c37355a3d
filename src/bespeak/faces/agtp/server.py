"""AGTP over TCP and TLS: listens, admits connections up to a cap, looks after their deadlines, and drains."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl as tls
from typing import Final

from bespeak.faces.agtp.connection import AgtpConnection, ServerState
from bespeak.faces.listener import open_listeners
from bespeak.faces.timeouts import DEFAULT_TIMEOUTS, Timeouts
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.translation import to_bytes
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits

_logger = logging.getLogger(__name__)

ACCEPT_BURST: Final = 64
"""Connections accepted in one go before others have their turn."""
ACCEPT_PAUSE: Final = 0.25
"""Seconds to wait when the process has no descriptors left; new peers wait in the kernel's queue meanwhile."""
ABORT_PATIENCE: Final = 1.0
"""Seconds for a cancelled request to end; one that refuses to is left behind."""
SHUTDOWN_TIMEOUT: Final = 5.0
"""Seconds for a TLS peer to say goodbye."""


class AgtpServer:
    """Serves one handler on any number of addresses."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        max_connections: int = 10_000,
    ) -> None:
        self._state = ServerState(handler, limits, timeouts)
        self._max_connections = max_connections
        self._listeners: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._admitting: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """Connections that are open now, TLS handshakes included."""
        return len(self._state.connections) + len(self._admitting)

    async def start(
        self, host: str, port: int, *, ssl: tls.SSLContext | None = None, reuse_port: bool = False
    ) -> list[tuple[str, int]]:
        """Listen on every address the host name has; return those addresses, with the port the system chose for 0."""
        loop = asyncio.get_running_loop()
        listeners = await open_listeners(host, port, reuse_port=reuse_port)
        self._listeners += listeners
        self._accepting += [loop.create_task(self._accept(listener, ssl)) for listener in listeners]
        if self._sweeping is None:
            self._sweep()
        return [listener.getsockname()[:2] for listener in listeners]

    async def drain(self) -> None:
        """Stop: accept nobody, close what is idle, let running requests finish within the drain timeout."""
        await self._stop(self._state.timeouts.drain)

    async def close(self) -> None:
        """Stop at once."""
        await self._stop(0)

    async def _stop(self, patience: float) -> None:
        self._state.draining = True
        # Accepting ends first, so that every admission it began has at least taken hold of its socket.
        for stopping in (self._accepting, list(self._admitting)):
            for task in stopping:
                task.cancel()
            await asyncio.gather(*stopping, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        for connection in self._state.connections:
            connection.drain()
        await self._ended(patience)
        for connection in self._state.connections:
            connection.abort()
        await self._ended(ABORT_PATIENCE)
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _ended(self, patience: float) -> None:
        tasks = [connection.task for connection in self._state.connections]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)

    async def _accept(self, listener: socket.socket, ssl: tls.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
                self._admit(accepted, ssl)
                for _ in range(ACCEPT_BURST):
                    accepted, _ = listener.accept()
                    self._admit(accepted, ssl)
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as error:
                # No descriptors or no memory: trying again at once would spin, giving up would be the end.
                _logger.warning("Cannot accept a connection: %s; trying again in %s s", error, ACCEPT_PAUSE)
                await asyncio.sleep(ACCEPT_PAUSE)

    def _admit(self, accepted: socket.socket, ssl: tls.SSLContext | None) -> None:
        accepted.setblocking(False)
        with contextlib.suppress(OSError):  # the peer may be gone already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.connections >= self._max_connections:
            self._turn_away(accepted, secure=ssl is not None)
            return
        task = asyncio.get_running_loop().create_task(self._connect(accepted, ssl))
        self._admitting.add(task)
        task.add_done_callback(self._admitting.discard)

    async def _connect(self, accepted: socket.socket, ssl: tls.SSLContext | None) -> None:
        """Make a connection of a socket; the TLS handshake happens here, beside those of all others."""
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: AgtpConnection(self._state, loop),
                accepted,
                ssl=ssl,
                ssl_handshake_timeout=self._state.timeouts.handshake if ssl else None,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT if ssl else None,
            )
        except (OSError, TimeoutError) as error:
            _logger.debug("A connection ended before it began: %s", error)

    def _turn_away(self, accepted: socket.socket, *, secure: bool) -> None:
        """Say why if that needs no waiting; a handshake only to refuse would cost more than it tells."""
        reason = f"This server has its {self._max_connections} connections in use; try again later."
        with contextlib.closing(accepted):
            if secure:
                return
            try:
                malformed = Malformed(503, "too-many-connections", reason)
                accepted.send(to_bytes(self._state.handler.malformed(malformed, Connection())))
            except OSError as error:
                _logger.debug("A connection over the cap was gone before it could be told: %s", error)
            except Exception:
                _logger.exception("A connection over the cap could not be answered")

    def _sweep(self) -> None:
        """Look at all deadlines: one timer for the server instead of one for each request."""
        loop = asyncio.get_running_loop()
        now = self._state.now = loop.time()
        for connection in tuple(self._state.connections):
            if connection.deadline <= now:
                connection.expire()
        self._sweeping = loop.call_later(self._state.timeouts.period, self._sweep)
