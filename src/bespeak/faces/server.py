"""TCP and TLS server for any face: listens, admits connections up to a limit, enforces deadlines, and drains."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import math
import os
import socket
import ssl as tls
from collections.abc import Mapping
from typing import Any, Final

from bespeak.errors import ConfigError
from bespeak.faces.connection import FaceConnection, Shared, TaskPool
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol import status
from bespeak.protocol.address import Address
from bespeak.protocol.exchange.messages import Malformed

_logger = logging.getLogger(__name__)
ACCEPT_BURST: Final = 64  # connections accepted in one go before others get their turn
ACCEPT_PAUSE: Final = 0.25  # seconds to wait if no file descriptors are left; peers stay in the kernel's queue
ABORT_PATIENCE: Final = 1.0  # seconds for a cancelled request to end; after that it is abandoned
FULL_FOR: Final = 2.0  # seconds after a refused connection in which the server counts as full
SHUTDOWN_TIMEOUT: Final = 5.0  # seconds for a TLS peer to answer close_notify


async def open_listeners(host: str, port: int, *, reuse_port: bool = False) -> list[socket.socket]:
    """Listen on every address of the host name; with port 0 the system chooses."""
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _listen({address: family for family, _, _, _, address in found}, reuse_port)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name, such as a..b
        raise _refusal(Address(host, port), error) from error


def reserve_port(address: Address, *, shared: bool) -> tuple[socket.socket, Address]:
    """Bind a port without listening; the socket holds it. Listen on it with the same option `shared` (SO_REUSEPORT)."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    placeholder = socket.socket(family, socket.SOCK_STREAM)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as alone:
            # Without SO_REUSEPORT this fails if another process listens, which would get half of the connections.
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((address.host, address.port))
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        placeholder.bind((address.host, address.port))
    except (OSError, UnicodeError) as error:
        placeholder.close()
        raise _refusal(address, error) from error
    return placeholder, Address(address.host, placeholder.getsockname()[1])


def _listen(addresses: Mapping[tuple[Any, ...], int], reuse_port: bool) -> list[socket.socket]:
    """Open one listening socket per address, or none if one of them fails."""
    with contextlib.ExitStack() as opened:
        listeners = []
        for address, family in addresses.items():
            listener = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(1024)
            listener.setblocking(False)
            listeners.append(listener)
        opened.pop_all()
        return listeners


def _refusal(address: Address, error: OSError | UnicodeError) -> ConfigError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    advice = " Stop the process that uses it, or choose another port." if taken else ""
    reason = getattr(error, "strerror", None) or error
    return ConfigError(f"Cannot listen on {address}: {reason}.{advice}")


class FaceServer:
    """Serves connections of one face on any number of addresses."""

    def __init__(self, *, timeouts: Timeouts, capacity: Capacity | None = None) -> None:
        """Create a server; `capacity` is shared by the faces of one process."""
        self._timeouts = timeouts
        self._capacity = capacity or Capacity()
        self._shared: Shared | None = None
        self._listeners: list[socket.socket] = []
        self._admitting: dict[asyncio.Task[None], socket.socket] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._spare: int | None = None
        self._warned_at = -math.inf

    # Implemented by a face.

    def connect(self, shared: Shared) -> FaceConnection[Any]:
        raise NotImplementedError

    def refuse(self, fault: Malformed) -> bytes:
        """Encode a refusal for a peer that is not admitted."""
        raise NotImplementedError

    def tick(self) -> None:
        """Run periodic work; called about once a second."""

    # Public interface.

    @property
    def connections(self) -> int:
        """Number of open connections, TLS handshakes included."""
        shared = self._shared
        return 0 if shared is None else len(shared.connections) + len(shared.pending)

    async def start(
        self, host: str, port: int, *, ssl: tls.SSLContext | None = None, reuse_port: bool = False
    ) -> list[tuple[str, int]]:
        """Listen on every address of the host name; return those addresses, with the actual port in place of 0."""
        loop = asyncio.get_running_loop()
        listeners = await open_listeners(host, port, reuse_port=reuse_port)
        if self._shared is None:
            self._shared = Shared(self._timeouts, TaskPool(loop), self._capacity)
            self._capacity.crowds.append(self._shared)
            self._spare = _spare_descriptor()
            self._sweep(self._shared)
        self._listeners += listeners
        for listener in listeners:
            self._listen(self._shared, listener, ssl)
        return [listener.getsockname()[:2] for listener in listeners]

    async def drain(self) -> None:
        """Stop gracefully: close idle connections, let running requests finish within the drain timeout."""
        await self._stop(self._timeouts.drain)

    async def close(self) -> None:
        await self._stop(0)

    # Stopping.

    async def _stop(self, patience: float) -> None:
        shared = self._shared
        if shared is None:
            return
        shared.draining = True
        shared.pool.drain()
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.remove_reader(listener)
            listener.close()
        self._listeners.clear()
        for accepted in self._admitting.values():
            _hang_up(accepted)
        await asyncio.gather(*self._admitting, return_exceptions=True)
        for connection in tuple(shared.connections):
            connection.drain()
        await self._ended(shared, patience)
        for connection in tuple(shared.connections):
            connection.transport.abort()
        shared.pool.cancel()
        await self._ended(shared, ABORT_PATIENCE)
        shared.pool.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._give_spare()
        if shared in self._capacity.crowds:
            self._capacity.crowds.remove(shared)

    async def _ended(self, shared: Shared, patience: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while shared.connections or shared.pool.waiting:
                    if shared.pool.waiting:
                        await asyncio.wait(shared.pool.waiting)
                    else:
                        shared.gone.clear()
                        await shared.gone.wait()

    # Admitting.

    def _listen(self, shared: Shared, listener: socket.socket, ssl: tls.SSLContext | None) -> None:
        if not shared.draining:
            asyncio.get_running_loop().add_reader(listener, self._accept, shared, listener, ssl)

    def _accept(self, shared: Shared, listener: socket.socket, ssl: tls.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        # Sockets that are closed in this turn keep their descriptors until the next one.
        for _ in range(min(ACCEPT_BURST, 2 * self._capacity.most_refused)):
            try:
                accepted, _ = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if shared.now > self._warned_at:
                    self._warned_at = shared.now
                    _logger.warning("Cannot accept a connection: %s", error)
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._turn_away(listener, secure=ssl is not None):
                    continue
                # No descriptors or no memory: retrying at once would spin, and giving up would end the server.
                loop.remove_reader(listener)
                loop.call_later(ACCEPT_PAUSE, self._listen, shared, listener, ssl)
                return
            self._admit(shared, accepted, ssl)

    def _admit(self, shared: Shared, accepted: socket.socket, ssl: tls.SSLContext | None) -> None:
        accepted.setblocking(False)
        with contextlib.suppress(OSError):  # the peer may have disconnected
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        capacity = self._capacity
        connection = self.connect(shared)
        if capacity.is_full:
            connection.overflow = self._overflow()
        shared.pending.add(connection)
        task = asyncio.get_running_loop().create_task(self._connect(connection, accepted, ssl))
        self._admitting[task] = accepted
        # Not in a `finally` of the task: one that is cancelled before its first step never gets there.
        task.add_done_callback(functools.partial(self._finish_admission, connection))
        if connection.overflow is not None:
            end = functools.partial(_end, connection, None if ssl is None else accepted)
            capacity.refuse(connection, end, shared.now)

    async def _connect(
        self, connection: FaceConnection[Any], accepted: socket.socket, ssl: tls.SSLContext | None
    ) -> None:
        """Set up the connection of an accepted socket; TLS handshakes run concurrently."""
        timeouts = self._timeouts
        patience = timeouts.handshake if connection.overflow is None else min(timeouts.handshake, timeouts.linger)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=ssl,
                ssl_handshake_timeout=patience if ssl else None,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT if ssl else None,
            )
        except (OSError, TimeoutError) as error:
            _logger.debug("A connection ended during its handshake: %s", error)

    def _finish_admission(self, connection: FaceConnection[Any], task: asyncio.Task[None]) -> None:
        del self._admitting[task]
        shared = connection.shared
        if connection in shared.pending:
            shared.pending.discard(connection)
            shared.capacity.refused.pop(connection, None)

    def _overflow(self) -> Malformed:
        reason = f"All {self._capacity.connections} connections of this server are in use; try again later."
        return Malformed(status.UNAVAILABLE, "too-many-connections", reason)

    def _turn_away(self, listener: socket.socket, *, secure: bool) -> bool:
        """Refuse a peer although the process has no descriptor left; return False if the spare one is gone too."""
        if self._spare is None:
            self._spare = _spare_descriptor()
            return False
        self._give_spare()
        with contextlib.suppress(OSError):
            accepted, _ = listener.accept()
            with contextlib.closing(accepted):
                accepted.setblocking(False)
                if not secure:
                    accepted.send(self.refuse(self._overflow()))
        self._spare = _spare_descriptor()
        return True

    def _give_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _sweep(self, shared: Shared) -> None:
        """Check all deadlines: one timer per server instead of one per request."""
        loop = asyncio.get_running_loop()
        now = shared.now = loop.time()
        shared.idle_until = now + self._timeouts.idle
        self.tick()
        full = shared.capacity.refused_at + FULL_FOR > now
        for connection in tuple(shared.connections):
            if connection.deadline <= now:
                connection.expire()
            elif full:
                connection.make_room(self._timeouts.crowded)
        shared.capacity.trim()
        self._sweeping = loop.call_later(self._timeouts.period, self._sweep, shared)


def _end(connection: FaceConnection[Any], handshaking: socket.socket | None) -> None:
    """End a connection that is refused. One without a handshake is made at once, told, and closed then."""
    if connection not in connection.shared.pending:
        connection.transport.abort()
    elif handshaking is not None:
        _hang_up(handshaking)


def _hang_up(accepted: socket.socket) -> None:
    """End an admission in progress: its connection is made and lost, or its handshake fails."""
    # Cancelling its task would not do: uvloop then makes the connection, and never reports that it is lost.
    with contextlib.suppress(OSError):  # the peer may have disconnected
        accepted.shutdown(socket.SHUT_RDWR)


def _spare_descriptor() -> int | None:
    """Open a descriptor to give up when there are no others: a peer can then still be accepted and refused."""
    try:
        return os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
