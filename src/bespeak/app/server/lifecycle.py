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
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from bespeak.app.server.assembly import Keeper
from bespeak.app.server.settings import HttpAssembly, Settings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.asgi import Application
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.faces.server import FaceServer
from bespeak.protocol.address import Address
from bespeak.protocol.tls import ALPN, server_context
from bespeak.protocol.wire.messages import Limits

if TYPE_CHECKING:
    from bespeak.faces.a2a.http import A2aApplication
    from bespeak.faces.http.server import HttpServer
    from bespeak.faces.mcp.http import McpApplication


class WebApplications:
    def __init__(self, assembly: HttpAssembly, mcp: McpSettings, a2a: A2aSettings) -> None:
        self._parts: list[McpApplication | A2aApplication] = []
        self._places: dict[str, Application] = {}
        answers = assembly.dispatcher.server.part("answers")
        if not (mcp.enabled or a2a.enabled or answers is not None):
            return
        from bespeak.app.server import http_face  # noqa: PLC0415 - only for HTTP

        if answers is not None and assembly.web.url is not None:
            self._places |= http_face.mount_answers(assembly, answers)
        if mcp.enabled:
            tools = http_face.make_mcp(assembly, mcp)
            self._parts.append(tools)
            self._places |= http_face.mount_mcp(tools, assembly.web)
        if a2a.enabled:
            skills = http_face.make_a2a(assembly, a2a)
            self._parts.append(skills)
            self._places |= http_face.mount_a2a(skills, assembly.web)

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


# Signals that stop a server in order; the last one is sent when its terminal closes.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


async def serve(
    keeper: Keeper,
    settings: Settings,
    *,
    ready: Callable[[Settings], None],
    reuse_port: bool = False,
    lifeline: int | None = None,
) -> None:
    """Accept connections until a stop signal or `lifeline` is readable; `ready` gets the actual addresses."""
    stop = stop_on_signals()
    if lifeline is not None:
        asyncio.get_running_loop().add_reader(lifeline, stop.set)
    limits = Limits(body=settings.max_body)
    timeouts = Timeouts(idle=settings.idle_timeout, read=settings.read_timeout, drain=settings.drain_timeout)
    capacity = Capacity(settings.max_connections, settings.max_buffered)
    agtp = AgtpServer(keeper.dispatcher, limits=limits, timeouts=timeouts, capacity=capacity)
    web: HttpServer | None = None
    operations: HttpServer | None = None
    loopback = settings.http is not None and settings.http.is_loopback
    several = settings.workers > 1
    assembly = HttpAssembly(keeper.dispatcher, settings.web, settings.auth, limits, loopback, stateless=several)
    beside = WebApplications(assembly, settings.mcp, settings.a2a)
    if not await _started(keeper, stop):
        return
    try:
        context = _tls(settings, ALPN)
        at = await agtp.start(settings.address.host, settings.address.port, ssl=context, reuse_port=reuse_port)
        settings = replace(settings, address=Address(*at[0]))
        if settings.http is not None:
            # Its documents contain the port of AGTP, which is known now.
            web = _web_server(assembly, settings, beside, timeouts, capacity)
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


def _web_server(
    assembly: HttpAssembly, settings: Settings, beside: WebApplications, timeouts: Timeouts, capacity: Capacity
) -> HttpServer:
    from bespeak.app.server.http_face import build_middleware, make_face  # noqa: PLC0415
    from bespeak.app.server.http_pages import Publishing  # noqa: PLC0415
    from bespeak.faces.http.server import HttpServer  # noqa: PLC0415 - loads httptools, only for HTTP

    limits, loopback, mcp, port = assembly.limits, assembly.loopback, settings.mcp.enabled, settings.address.port
    keys_required = settings.keys_required
    publishing = Publishing(auth=settings.auth, keys_required=keys_required, agtp_port=port, mcp=mcp, a2a=settings.a2a)
    face = make_face(assembly.dispatcher, settings.web, limits=limits, loopback=loopback, publishing=publishing)
    outer = build_middleware(face, settings.web)
    return HttpServer(face, outer, streamed=beside.places, timeouts=timeouts, capacity=capacity)


def _operations(
    keeper: Keeper, settings: Settings, timeouts: Timeouts, servers: Mapping[str, FaceServer | None]
) -> HttpServer:
    from bespeak.app.server.http_face import MOST_BUFFERED, MOST_CONNECTIONS, OperationsApp, make_face  # noqa: PLC0415
    from bespeak.faces.http.server import HttpServer  # noqa: PLC0415 - loads httptools, only for HTTP

    assert settings.operations is not None
    for face, server in servers.items():
        if keeper.metrics is not None and server is not None:
            count = partial(attrgetter("connections"), server)
            keeper.metrics.gauge(f"bespeak_{face}_connections", "Open connections.", count)
    app = OperationsApp(keeper.dispatcher, keeper.metrics, loopback=settings.operations.is_loopback)
    face_behind = make_face(keeper.dispatcher, settings.web)
    return HttpServer(face_behind, app, timeouts=timeouts, capacity=Capacity(MOST_CONNECTIONS, MOST_BUFFERED))


def _tls(settings: Settings, alpn: str) -> ssl.SSLContext | None:
    if settings.certificate is None or settings.key is None:
        return None
    files = (settings.certificate, settings.key)
    return server_context(*files, client_ca=settings.client_ca, required=settings.client_required, alpn=alpn)


def stop_on_signals() -> asyncio.Event:
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
