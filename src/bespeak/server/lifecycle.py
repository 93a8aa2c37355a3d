"""Start, announce, wait, drain, stop: the life of one serving process."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from bespeak.runtime.access_log import AccessLog
from bespeak.server.assembly import Assembled
from bespeak.server.keeper import Keeper
from bespeak.server.settings import Settings
from bespeak.transports.agtp_server import AgtpServer
from bespeak.transports.timeouts import Timeouts
from bespeak.transports.tls import server_context
from bespeak.wire.limits import Limits

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Each ends a server in order; the last one comes when its terminal is closed."""


async def serve(
    assembled: Assembled,
    settings: Settings,
    keeper: Keeper,
    *,
    ready: Callable[[str, int], None],
    reuse_port: bool = False,
    lifeline: int | None = None,
) -> None:
    """Accept until a signal to stop, or until `lifeline` can be read; then finish what is running and return."""
    stop = _stop_on_signals()
    if lifeline is not None:
        asyncio.get_running_loop().add_reader(lifeline, stop.set)
    context = None
    if settings.certificate is not None and settings.key is not None:
        auth = settings.auth
        context = server_context(
            settings.certificate,
            settings.key,
            client_ca=auth.mtls.ca if "mtls" in auth.modes else None,
            required=auth.modes == ("mtls",),
        )
    dispatcher = assembled.dispatcher
    server = AgtpServer(
        AccessLog(dispatcher, assembled.registry) if AccessLog.wanted() else dispatcher,
        limits=Limits(body=settings.max_body),
        timeouts=Timeouts(idle=settings.idle_timeout, read=settings.read_timeout, drain=settings.drain_timeout),
        max_connections=settings.max_connections,
    )
    await keeper.start()
    try:
        addresses = await server.start(settings.address.host, settings.address.port, ssl=context, reuse_port=reuse_port)
    except BaseException:
        await keeper.stop()
        raise
    # What exists now lives as long as the process: the collector need not look at it again.
    gc.freeze()
    ready(*addresses[0])
    try:
        await stop.wait()
    finally:
        await server.drain()
        await assembled.registry.close()
        await keeper.stop()


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    return stop


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the fastest loop this platform has."""
    if sys.platform == "win32":
        asyncio.run(main)
    else:
        import uvloop  # noqa: PLC0415 - not installable on Windows

        uvloop.run(main)
