"""The MCP servers of a service: each is started at the first call, once for all endpoints, and again after its end."""

from __future__ import annotations

import asyncio
import importlib
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bespeak.runtime.bindings.mcp.failure import McpFailure
from bespeak.runtime.bindings.mcp.launch import Launch

if TYPE_CHECKING:
    import ssl

    from bespeak.runtime.bindings.mcp.connection import McpConnection

_MOST_CALLS: Final = 64
"""Calls of one server at one time."""
_LONGEST_WAIT: Final = 30.0
"""Seconds between two starts of a server that keeps failing."""


class McpPool:
    """One upstream for each server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None) -> None:
        """Create a pool. `tls` replaces the system's trust store."""
        self._clock = clock
        self._tls = tls
        self._upstreams: dict[tuple[object, ...], McpUpstream] = {}

    def upstream(self, key: tuple[object, ...], launch: Launch) -> McpUpstream:
        """Return the upstream for a server; nothing is started before the first call."""
        found = self._upstreams.get(key)
        if found is None:
            found = self._upstreams[key] = McpUpstream(launch, self._clock, self._tls)
        return found

    async def aclose(self) -> None:
        """End all servers. A later call starts its server again."""
        await asyncio.gather(*(upstream.aclose() for upstream in self._upstreams.values()))


class McpUpstream:
    """One server. A failed start is not repeated before its waiting time is over."""

    def __init__(self, launch: Launch, clock: Callable[[], float], tls: ssl.SSLContext | None) -> None:
        self.places = asyncio.Semaphore(_MOST_CALLS)
        self._launch = launch
        self._clock = clock
        self._tls = tls
        self._connection: McpConnection | None = None
        self._opening: asyncio.Task[McpConnection | McpFailure] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._reason = ""

    async def connection(self) -> McpConnection | McpFailure:
        """Return the open connection. Starts the server if it does not run; all callers wait for the same start."""
        known = self._connection
        if known is not None:
            if known.is_open:
                return known
            self._connection = None
            self._note("the server has ended")
            await known.close()
        if self._opening is None:
            wait = self._not_before - self._clock()
            if wait > 0:
                return McpFailure("unreachable", self._reason, retry_after=math.ceil(wait))
            self._opening = asyncio.create_task(self._open())
        opening = self._opening
        try:
            # A caller whose time is over must not stop the start for the others.
            return await asyncio.shield(opening)
        finally:
            if opening.done() and self._opening is opening:
                self._opening = None

    def succeed(self) -> None:
        """Forget earlier failures: the server has answered a call."""
        self._failures = 0

    async def aclose(self) -> None:
        """End the server."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _open(self) -> McpConnection | McpFailure:
        # The SDK takes a second to load, so it is loaded beside the loop and only if it is needed.
        module = await asyncio.to_thread(importlib.import_module, "bespeak.runtime.bindings.mcp.connection")
        connection: McpConnection = module.McpConnection(self._launch, self._tls)
        fault = self._launch.fault
        failure = McpFailure("unreachable", fault) if fault else await connection.open()
        if failure is not None:
            self._note(failure.text)
            await connection.close()
            return failure
        self._connection = connection
        return connection

    def _note(self, reason: str) -> None:
        """Count a failure. The first restart is immediate; each further one waits twice as long as the one before."""
        self._failures += 1
        self._reason = reason
        wait = 0.0 if self._failures == 1 else min(0.5 * 2 ** min(self._failures - 2, 16), _LONGEST_WAIT)
        self._not_before = self._clock() + wait
