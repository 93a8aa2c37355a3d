"""HTTP over TCP and TLS with uvicorn's protocol, on a loop that others share: listens, looks after deadlines, drains.

uvicorn's own `Server` owns its process: it takes the signals, ends the process when a port is taken, and wakes ten
times a second. Here one server of several starts and stops with the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl as tls
import time
from email.utils import formatdate
from functools import partial
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from bespeak.faces.agtp.server import ABORT_PATIENCE, SHUTDOWN_TIMEOUT
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.protocol import HttpConnection, Shared
from bespeak.faces.listener import BACKLOG, open_listeners
from bespeak.faces.timeouts import DEFAULT_TIMEOUTS, Timeouts

_logger = logging.getLogger(__name__)


class HttpServer:
    """Serves one face on any number of addresses."""

    def __init__(
        self,
        face: HttpFace,
        app: Application | None = None,
        *,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        max_connections: int = 10_000,
    ) -> None:
        """`app`: what requests go through on their way to the face, if anything."""
        self._shared = Shared(face, direct=app is None, timeouts=timeouts, max_connections=max_connections)
        self._config = Config(
            cast("Any", app or face),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            interface="asgi3",
            # Parsed by httptools, in a protocol of our own.
            http=HttpConnection,
        )
        self._config.load()
        self._state = ServerState()
        self._servers: list[asyncio.Server] = []
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    @property
    def _connections(self) -> set[HttpConnection]:
        return cast("set[HttpConnection]", self._state.connections)

    async def start(
        self, host: str, port: int, *, ssl: tls.SSLContext | None = None, reuse_port: bool = False
    ) -> list[tuple[str, int]]:
        """Listen on every address the host name has; return those addresses, with the port the system chose for 0."""
        loop = asyncio.get_running_loop()
        listeners = await open_listeners(host, port, reuse_port=reuse_port)
        make = partial(
            HttpConnection,
            self._shared,
            config=self._config,
            server_state=self._state,
            app_state={},
            _loop=loop,
        )
        for listener in listeners:
            server = await loop.create_server(
                make,
                sock=listener,
                ssl=ssl,
                backlog=BACKLOG,
                ssl_handshake_timeout=self._shared.timeouts.handshake if ssl else None,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT if ssl else None,
            )
            self._servers.append(server)
        if self._sweeping is None:
            self._sweep()
        return [listener.getsockname()[:2] for listener in listeners]

    async def drain(self) -> None:
        """Stop: accept nobody, close what is idle, let running requests finish within the drain timeout."""
        await self._stop(self._shared.timeouts.drain)

    async def close(self) -> None:
        """Stop at once."""
        await self._stop(0)

    async def _stop(self, patience: float) -> None:
        self._shared.draining = True
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.shutdown()
        await self._ended(patience)
        for connection in tuple(self._connections):
            connection.transport.abort()
        for task in tuple(self._state.tasks):
            task.cancel()
        await self._ended(ABORT_PATIENCE)
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _ended(self, patience: float) -> None:
        """Wait until nobody is connected and nothing runs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self._connections or self._state.tasks:
                    if self._state.tasks:
                        await asyncio.wait(self._state.tasks)
                    else:
                        self._shared.gone.clear()
                        await self._shared.gone.wait()

    def _sweep(self) -> None:
        """Look at all deadlines, and at the clock: one timer for the server instead of one for each request."""
        loop = asyncio.get_running_loop()
        now = self._shared.now = loop.time()
        self._state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]
        for connection in tuple(self._connections):
            if connection.deadline <= now:
                connection.expire()
        self._sweeping = loop.call_later(self._shared.timeouts.period, self._sweep)
