"""Serve a target in one process, from its start to its drain, or in several that a parent supervises.

Several processes share ports (SO_REUSEPORT).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from bespeak.app.server.assembly import Assembled, Keeper, assemble, now
from bespeak.app.server.log import log_to_stderr
from bespeak.app.server.settings import HttpAssembly, Settings, fit_connections, with_http_face, with_public_url
from bespeak.app.server.target import Target, load_target
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.errors import BespeakError, ConfigError
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.asgi import Application
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.faces.server import FaceServer, open_listeners, reserve_port
from bespeak.protocol.address import Address
from bespeak.protocol.tls import ALPN, server_context
from bespeak.protocol.wire.messages import Limits
from bespeak.runtime.concurrency import running_threads
from bespeak.runtime.exchange import SHARED_FOLDER, make_metrics
from bespeak.runtime.identity.signer import signing_key, signing_keys
from bespeak.state.audit.settings import unknown_fields
from bespeak.state.store.settings import Role, open_store
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

if TYPE_CHECKING:
    from bespeak.app.server.http_pages import Publishing
    from bespeak.faces.a2a.http import A2aApplication
    from bespeak.faces.http.server import HttpServer
    from bespeak.faces.mcp.http import McpApplication

_logger = logging.getLogger(__name__)

_RESTARTS_PER_MINUTE = 5  # a worker that keeps dying must be reported, not hidden behind restarts
WorkerMain = Callable[[Settings, str, Connection], None]
"""`(settings, updated, ready)`: serve until SIGTERM; send one message on `ready` once connections are accepted."""


class WorkerProcesses:
    def __init__(self, settings: Settings, updated: str, main: WorkerMain) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._main = main
        self._updated = updated
        self._placeholders, self._settings = _reserve_ports(settings)
        self._processes: list[SpawnProcess] = []
        self._restarts: list[float] = []
        self._stopping = threading.Event()

    def run(self, ready: Callable[[Settings], None]) -> int:
        """Start all workers, announce once, restart dead ones, stop all on a signal; return the exit code."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        for _ in range(self._settings.workers):
            if not self._start():
                return self._end(2)
        ready(self._settings)
        while not self._stopping.is_set():
            wait([process.sentinel for process in self._processes], timeout=1.0)
            if not self._stopping.is_set() and not self._replace_fallen():
                return self._end(2)
        return self._end(0)

    def _start(self) -> bool:
        """Start one worker and wait until it accepts connections; return False if it died first."""
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._main, args=(self._settings, self._updated, sender), daemon=True)
        # A worker that is still importing has no handler yet: it inherits that Ctrl-C is left to its parent.
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.start()
        signal.signal(signal.SIGINT, interrupt)
        sender.close()
        try:
            receiver.recv()
        except EOFError:
            process.join()
            _logger.error("worker %s ended with code %s before it was ready", process.pid, process.exitcode)
            return False
        finally:
            receiver.close()
        self._processes.append(process)
        return True

    def _replace_fallen(self) -> bool:
        for process in [process for process in self._processes if not process.is_alive()]:
            self._processes.remove(process)
            _logger.error("worker %s ended with code %s; starting another", process.pid, process.exitcode)
            now = time.monotonic()
            self._restarts = [moment for moment in self._restarts if now - moment < 60] + [now]
            if len(self._restarts) > _RESTARTS_PER_MINUTE:
                _logger.error("more than %s workers died within a minute; stopping", _RESTARTS_PER_MINUTE)
                return False
            if not self._start():
                return False
        return True

    def _stop(self, *_: object) -> None:
        self._stopping.set()
        for process in self._processes:
            process.terminate()

    def _end(self, code: int) -> int:
        self._stop()
        deadline = time.monotonic() + self._settings.drain_timeout + 5
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        for placeholder in self._placeholders:
            placeholder.close()
        return code


def _reserve_ports(settings: Settings) -> tuple[list[socket.socket], Settings]:
    """Choose and reserve the ports before the first worker starts."""
    placeholders: list[socket.socket] = []
    chosen: dict[str, Any] = {}
    with contextlib.ExitStack() as opened:
        for name in ("address", "http", "operations"):
            wanted: Address | None = getattr(settings, name)
            if wanted is not None:
                placeholder, chosen[name] = reserve_port(wanted, shared=True)
                placeholders.append(opened.enter_context(placeholder))
        opened.pop_all()
    return placeholders, replace(settings, **chosen)


Ready = Callable[[Assembled, Settings], None]
"""Callback for when connections are accepted; receives the settings with the actual addresses."""


def assemble_target(
    target: Target, updated: str, *, http_url: str | None = None, stored: bool = True, describes: bool = False
) -> Assembled:
    """Assemble a loaded target; its findings precede those of the assembly.

    `http_url` is the URL of its HTTP face, if it has one; `stored` says whether it will have a store. `describes` is
    True if it is not served, so that it needs neither its own key nor the credentials of its upstreams.
    """
    path = target.document.signing_key
    assembled = assemble(
        target.service if http_url is None else with_http_face(target.service, http_url),
        base=target.base,
        updated=updated,
        signing_key=None if path is None or describes else signing_key(path),
        verifies=not target.document.auth.is_open,
        stored=stored,
        tables=target.document.extension_tables,
        describes=describes,
    )
    assembled.findings[:0] = target.findings
    assembled.findings.extend(unknown_fields(target.document.audit.fields, assembled.registrar.endpoints.values()))
    if http_url is not None:
        from bespeak.app.server.http_pages import check_publishing  # noqa: PLC0415 - only for HTTP

        assembled.findings.extend(check_publishing(assembled.registrar, http_url))
    return assembled


def serve_target(
    target: Target, settings: Settings, *, report: Callable[[list[Diagnostic]], None], ready: Ready
) -> int:
    """Serve until a stop signal; return the exit code, 0 after an orderly end."""
    updated = now()
    settings = fit_connections(settings)
    with contextlib.ExitStack() as held:
        if settings.http is not None and settings.http.port == 0 and settings.workers == 1:
            # The documents contain the port, so it is chosen before they are built.
            placeholder, http = reserve_port(settings.http, shared=False)
            held.enter_context(placeholder)
            settings = replace(settings, http=http)
        settings = with_public_url(settings, target.service)
        assembled = assemble_target(target, updated, http_url=settings.web.url if settings.http is not None else None)
        registrar = assembled.registrar
        if registrar.upstreams is not None or registrar.mcp_servers is not None:
            from bespeak.runtime.bindings.upstream_probe import probe_upstreams  # noqa: PLC0415 - few servers have any

            assembled.findings.extend(asyncio.run(probe_upstreams(registrar.endpoints.values())))
        report(assembled.findings)
        if settings.strict and has_errors(assembled.findings):
            raise ConfigError("not started: --strict was given, and there are errors")
        if settings.workers > 1:
            if settings.operations is not None:
                os.environ[SHARED_FOLDER] = held.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-metrics-"))
            workers = WorkerProcesses(settings, updated, _work)
            # Report errors of the store once, before the first worker starts. This also migrates its tables.
            run(_try_store(settings))
            return workers.run(lambda served: ready(assembled, served))
        run(_try_addresses(settings))
        keeper = _keeper(assembled, target, settings)
        run(serve(keeper, settings, ready=lambda served: ready(assembled, served), lifeline=_lifeline()))
    _abandon_threads()
    return 0


def _keeper(assembled: Assembled, target: Target, settings: Settings) -> Keeper:
    role: Role = "sole" if settings.workers == 1 else "shared"
    store = open_store(settings.store, role=role, durability=settings.durability)
    metrics = make_metrics() if settings.operations is not None else None
    return Keeper(assembled, store, target.document, signing_keys(target.document.signing_key), metrics)


async def _try_addresses(settings: Settings) -> None:
    """Test that the addresses are free before a store is created, so that a failed start leaves no files behind."""
    for address in (settings.address, settings.http, settings.operations):
        if address is not None:
            for listener in await open_listeners(address.host, address.port):
                listener.close()


async def _try_store(settings: Settings) -> None:
    store = open_store(settings.store, role="shared", durability=settings.durability)
    await store.start()
    await store.close()


def _work(settings: Settings, updated: str, ready: Connection) -> None:
    """Run one worker process. The parent has reported the findings, so they are not repeated."""
    log_to_stderr(settings.log_level, settings.log_format)
    try:
        target = load_target(settings.target)
        settings = with_public_url(settings, target.service)
        assembled = assemble_target(target, updated, http_url=settings.web.url if settings.http is not None else None)
        keeper = _keeper(assembled, target, settings)
        run(serve(keeper, settings, ready=lambda *_: ready.send(True), reuse_port=True, lifeline=_lifeline()))
        _abandon_threads()
    except BespeakError as error:
        sys.exit(f"bespeak: {error}")


def _lifeline() -> int | None:
    """Return what becomes readable when the parent of this process ends: a killed parent sends no signal."""
    parent = multiprocessing.parent_process()
    return parent.sentinel if parent else None


def _abandon_threads() -> None:
    """End the process now if handlers are stuck in threads after the drain timeout: threads cannot be stopped."""
    stuck = running_threads()
    if stuck:
        _logger.warning("%d handlers did not finish in time and are abandoned", stuck)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class WebApplications:
    def __init__(self, assembly: HttpAssembly, mcp: McpSettings, a2a: A2aSettings) -> None:
        self._parts: list[McpApplication | A2aApplication] = []
        self.places: Mapping[str, Application] | None = None  # the applications by path; None if there are none
        answers = assembly.dispatcher.server.part("answers")
        if not (mcp.enabled or a2a.enabled or answers is not None):
            return
        from bespeak.app.server import http_face  # noqa: PLC0415 - only for HTTP

        places: dict[str, Application] = {}
        if answers is not None and assembly.web.url is not None:
            places |= http_face.mount_answers(assembly, answers)
        if mcp.enabled:
            tools = http_face.make_mcp(assembly, mcp)
            self._parts.append(tools)
            places |= http_face.mount_mcp(tools, assembly.web)
        if a2a.enabled:
            skills = http_face.make_a2a(assembly, a2a)
            self._parts.append(skills)
            places |= http_face.mount_a2a(skills, assembly.web)
        self.places = places or None

    def add_console(self, assembly: HttpAssembly, publishing: Publishing, settings: Settings) -> None:
        """Add the console, whose calls to copy name the port of AGTP."""
        from bespeak.app.server.console import mount_console  # noqa: PLC0415 - few servers have it

        self.places = {**(self.places or {}), **mount_console(assembly, publishing, settings)}

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
    if settings.console:
        beside.add_console(assembly, publishing, settings)
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
