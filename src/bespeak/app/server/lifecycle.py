"""Start, announce, wait, drain, stop: the life of one serving process and of the applications beside its HTTP face."""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from bespeak.app.server.assembly import Keeper
from bespeak.app.server.settings import Settings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.asgi import Application
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.faces.server import FaceServer
from bespeak.protocol.address import Address
from bespeak.protocol.tls import ALPN, server_context
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings

if TYPE_CHECKING:
    from bespeak.faces.http.server import HttpServer


class _Startable(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class WebApplications:
    """The chosen applications."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        web: HttpSettings,
        auth: AuthSettings,
        *,
        mcp: McpSettings,
        a2a: A2aSettings,
        limits: Limits = DEFAULT_LIMITS,
        loopback: bool = False,
        stateless: bool = False,
    ) -> None:
        """Build them. `loopback` is True if the server listens on loopback only, `stateless` if it has several
        processes, so that no session can be kept in one.
        """
        self._parts: list[_Startable] = []
        self._places: dict[str, Application] = {}
        if mcp.enabled:
            from bespeak.app.server import mcp_face  # noqa: PLC0415 - only for MCP

            tools = mcp_face.make_mcp(dispatcher, web, auth, mcp, limits=limits, loopback=loopback, stateless=stateless)
            self._parts.append(tools)
            self._places |= mcp_face.mounted(tools, web)
        if a2a.enabled:
            from bespeak.app.server import a2a_face  # noqa: PLC0415 - only for A2A

            skills = a2a_face.make_a2a(dispatcher, web, auth, a2a, limits=limits, loopback=loopback)
            self._parts.append(skills)
            self._places |= a2a_face.mounted(skills, web)

    @property
    def places(self) -> Mapping[str, Application] | None:
        """The applications by path; None if there are none."""
        return self._places or None

    async def start(self) -> None:
        """Start all of them; the store must be started."""
        for part in self._parts:
            await part.start()

    async def stop(self) -> None:
        """Stop all of them, before the store is closed."""
        for part in self._parts:
            await part.stop()


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Signals that stop a server in order; the last one is sent when its terminal closes."""


async def serve(
    keeper: Keeper,
    settings: Settings,
    *,
    ready: Callable[[Settings], None],
    reuse_port: bool = False,
    lifeline: int | None = None,
) -> None:
    """Accept connections until a stop signal, or until `lifeline` becomes readable; then finish running requests.

    `ready` is called with the settings, which contain the actual addresses.
    """
    stop = stop_on_signals()
    if lifeline is not None:
        asyncio.get_running_loop().add_reader(lifeline, stop.set)
    limits = Limits(body=settings.max_body)
    timeouts = Timeouts(idle=settings.idle_timeout, read=settings.read_timeout, drain=settings.drain_timeout)
    capacity = Capacity(settings.max_connections, settings.max_buffered)
    agtp = AgtpServer(keeper.dispatcher, limits=limits, timeouts=timeouts, capacity=capacity)
    web: HttpServer | None = None
    operations: HttpServer | None = None
    beside = _beside(keeper.dispatcher, settings, limits)
    if not await _started(keeper, stop):
        return
    try:
        context = _tls(settings, ALPN)
        at = await agtp.start(settings.address.host, settings.address.port, ssl=context, reuse_port=reuse_port)
        settings = replace(settings, address=Address(*at[0]))
        if settings.http is not None:
            # Its documents contain the port of AGTP, which is known now.
            web = _web_server(keeper.dispatcher, settings, limits, timeouts, capacity, beside=beside)
            await beside.start()
            context = _tls(settings, "http/1.1")
            at = await web.start(settings.http.host, settings.http.port, ssl=context, reuse_port=reuse_port)
            settings = replace(settings, http=Address(*at[0]))
        if settings.operations is not None:
            operations = _operations(keeper, settings, timeouts, {"agtp": agtp, "http": web})
            at = await operations.start(settings.operations.host, settings.operations.port, reuse_port=reuse_port)
            settings = replace(settings, operations=Address(*at[0]))
    except BaseException:
        for server in (agtp, web, operations):
            if server is not None:
                await server.close()
        await beside.stop()
        await keeper.stop()
        raise
    # All current objects live as long as the process, so the collector can skip them.
    gc.freeze()
    ready(settings)
    try:
        await stop.wait()
    finally:
        await asyncio.gather(agtp.drain(), *([web.drain()] if web is not None else []))
        if operations is not None:
            await operations.close()
        await beside.stop()
        await keeper.stop()
        # Modules such as DuckDB report as leaked what the last collection of the process does not find.
        gc.unfreeze()


async def _started(keeper: Keeper, stop: asyncio.Event) -> bool:
    """Start the keeper; return False if the server is told to stop first, since a lifespan may wait for long."""
    starting, stopping = asyncio.ensure_future(keeper.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
        return False
    starting.result()
    return True


def _beside(dispatcher: Dispatcher, settings: Settings, limits: Limits) -> WebApplications:
    return WebApplications(
        dispatcher,
        settings.web,
        settings.auth,
        mcp=settings.mcp,
        a2a=settings.a2a,
        limits=limits,
        loopback=settings.http is not None and settings.http.is_loopback,
        stateless=settings.workers > 1,
    )


def _web_server(
    dispatcher: Dispatcher,
    settings: Settings,
    limits: Limits,
    timeouts: Timeouts,
    capacity: Capacity,
    *,
    beside: WebApplications,
) -> HttpServer:
    from bespeak.app.server.http_face import build_middleware, make_face  # noqa: PLC0415
    from bespeak.app.server.http_pages import Publishing  # noqa: PLC0415
    from bespeak.faces.http.server import HttpServer  # noqa: PLC0415 - loads httptools, only for HTTP

    assert settings.http is not None
    publishing = Publishing(
        auth=settings.auth,
        keys_required=settings.keys_required,
        agtp_port=settings.address.port,
        mcp=settings.mcp.enabled,
        a2a=settings.a2a,
    )
    face = make_face(dispatcher, settings.web, limits=limits, loopback=settings.http.is_loopback, publishing=publishing)
    outer = build_middleware(face, settings.web)
    return HttpServer(face, outer, streamed=beside.places, timeouts=timeouts, capacity=capacity)


def _operations(
    keeper: Keeper, settings: Settings, timeouts: Timeouts, servers: Mapping[str, FaceServer | None]
) -> HttpServer:
    from bespeak.app.server.http_face import (  # noqa: PLC0415
        MOST_BUFFERED,
        MOST_CONNECTIONS,
        Operations,
        make_face,
    )
    from bespeak.faces.http.server import HttpServer  # noqa: PLC0415 - loads httptools, only for HTTP

    assert settings.operations is not None
    for face, server in servers.items():
        if keeper.metrics is not None and server is not None:
            keeper.metrics.gauge(f"bespeak_{face}_connections", "Open connections.", partial(_count, server))
    app = Operations(keeper.dispatcher, keeper.metrics, loopback=settings.operations.is_loopback)
    face_behind = make_face(keeper.dispatcher, settings.web)
    return HttpServer(face_behind, app, timeouts=timeouts, capacity=Capacity(MOST_CONNECTIONS, MOST_BUFFERED))


def _count(server: FaceServer) -> float:
    return float(server.connections)


def _tls(settings: Settings, alpn: str) -> ssl.SSLContext | None:
    """Build the TLS context of a face; None for plain TCP."""
    if settings.certificate is None or settings.key is None:
        return None
    return server_context(
        settings.certificate,
        settings.key,
        client_ca=settings.client_ca,
        required=settings.client_required,
        alpn=alpn,
    )


def stop_on_signals() -> asyncio.Event:
    """Return an event that a stop signal sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    return stop


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the fastest event loop of this platform."""
    if sys.platform == "win32":
        asyncio.run(main)
    else:
        import uvloop  # noqa: PLC0415 - not installable on Windows

        uvloop.run(main)
