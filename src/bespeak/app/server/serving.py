"""Serve a target: load it, assemble it, run it in one process or several."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.app.server.assembly import Assembled, assemble, now
from bespeak.app.server.descriptors import fit_connections
from bespeak.app.server.keeper import Keeper
from bespeak.app.server.lifecycle import run, serve
from bespeak.app.server.log import log_to_stderr
from bespeak.app.server.public_url import with_http_face, with_public_url
from bespeak.app.server.settings import Settings
from bespeak.app.server.target import Target, load_target
from bespeak.app.server.workers import Workers
from bespeak.errors import BespeakError, ConfigError
from bespeak.faces.listener import open_listeners, reserve_port
from bespeak.protocol.fault import Fault
from bespeak.runtime.metrics import SHARED_FOLDER, make_metrics
from bespeak.runtime.threads import running_threads
from bespeak.state.audit.recorded_fields import unknown_fields
from bespeak.state.store.opening import Role, open_store
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

_logger = logging.getLogger(__name__)

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
    key = None if path is None or describes else _signing_key(path)
    verifies = not target.document.auth.is_open
    service = target.service if http_url is None else with_http_face(target.service, http_url)
    assembled = assemble(
        service,
        base=target.base,
        updated=updated,
        signing_key=key,
        verifies=verifies,
        stored=stored,
        describes=describes,
    )
    assembled.findings[:0] = target.findings
    assembled.findings.extend(unknown_fields(target.document.audit.fields, assembled.registrar.endpoints.values()))
    if http_url is not None:
        from bespeak.app.server.http_pages import check_publishing  # noqa: PLC0415 - only for HTTP

        assembled.findings.extend(check_publishing(assembled.registrar))
    return assembled


def signing_keys(path: Path | None) -> tuple[OKPKey, ...]:
    """Read the signing key and the keys it replaced."""
    if path is None:
        return ()
    from bespeak.state.identity.key_history import read_history  # noqa: PLC0415 - slow to load, for signers

    key = _signing_key(path)
    before = read_history(path, key)
    if isinstance(before, Fault):
        raise ConfigError(f"signing_key {path}: {before.message}")
    return (key, *(one.key for one in before))


def _signing_key(path: Path) -> OKPKey:
    from bespeak.state.identity.key_file import read_key  # noqa: PLC0415 - slow to load, for signers

    key = read_key(path)
    if isinstance(key, Fault):
        raise ConfigError(f"signing_key {path}: {key.message}")
    return key


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
            workers = Workers(settings, updated, _work)
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
