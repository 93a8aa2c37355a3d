"""Serve a target in one process, or in several that a parent supervises and that share ports (SO_REUSEPORT)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from bespeak.app.server.assembly import Assembled, Keeper, assemble, now
from bespeak.app.server.lifecycle import STOP_SIGNALS, run, serve
from bespeak.app.server.log import log_to_stderr
from bespeak.app.server.settings import Settings, fit_connections, with_http_face, with_public_url
from bespeak.app.server.target import Target, load_target
from bespeak.errors import BespeakError, ConfigError
from bespeak.faces.server import open_listeners, reserve_port
from bespeak.protocol.address import Address
from bespeak.runtime.concurrency import running_threads
from bespeak.runtime.exchange import SHARED_FOLDER, make_metrics
from bespeak.runtime.identity.signer import signing_key, signing_keys
from bespeak.state.audit.settings import unknown_fields
from bespeak.state.store.settings import Role, open_store
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

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
        assembled.findings.extend(_probe_upstreams(assembled))
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


def _probe_upstreams(assembled: Assembled) -> list[Diagnostic]:
    if assembled.registrar.upstreams is None and assembled.registrar.mcp_servers is None:
        return []
    from bespeak.runtime.bindings.upstream_probe import probe_upstreams  # noqa: PLC0415 - most servers have no upstream

    return asyncio.run(probe_upstreams(assembled.registrar.endpoints.values()))


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
