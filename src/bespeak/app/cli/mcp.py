"""`bespeak mcp`: a service as an MCP server over standard input and output."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, redirect_stdout, suppress
from typing import Any, Final

import click

from bespeak.app.cli.service import (
    VARIABLE,
    connection_options,
    declared_scopes,
    derived_id,
    is_address,
    open_service,
)
from bespeak.app.server.lifecycle import run, stop_on_signals
from bespeak.app.server.log import LEVELS, log_to_stderr
from bespeak.app.server.mcp_backend import ClientBackend
from bespeak.app.server.mcp_face import sdk_needed
from bespeak.app.server.state import store_place
from bespeak.app.server.target import Target, load_target
from bespeak.contract.endpoint import Endpoint
from bespeak.protocol.exchange.scope import Scopes
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import MEMORY, CaseSettings
from bespeak.state.store.store import Store

_LOCAL_INTERVAL: Final = 1.0
_REMOTE_INTERVAL: Final = 60.0
"""Seconds between looks for new endpoints: a loaded service answers at once, another one is asked over the network."""


@click.command()
@click.argument("service")
@click.option(
    "--store",
    "override",
    metavar="PLACE",
    help="Store of a TARGET: a file, memory, or postgresql://...  [default: bespeak.db beside TARGET]",
)
@click.option(
    "--log",
    "level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="Log level on standard error.",
)
@connection_options
def mcp(service: str, override: str | None, level: str, **options: Any) -> int:
    """Serve the endpoints of SERVICE as MCP tools over standard input and output.

    SERVICE is a folder, an .agis, .toml or .py file, module:app, an OpenAPI file (JSON or YAML), or the address of a
    live service: agtp://HOST or https://HOST. Every tool is called with the authority of the options, through the
    same checks as any other call. Before an irreversible call, the user is asked; if the MCP client cannot ask, the
    call waits for `bespeak cases accept`.

    Examples:

    \b
    bespeak mcp examples/hotel --as claude --scope booking:room --scope rooms:read
    bespeak mcp openapi.yaml
    bespeak mcp agtp://rooms.acme.example --agent-id ID --scope rooms:read
    """
    with sdk_needed():
        import bespeak.faces.mcp.server  # noqa: F401, PLC0415 - slow to load
    log_to_stderr(level)
    run(_serve(service, override, options))
    return 0


async def _serve(service: str, override: str | None, options: dict[str, Any]) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    from bespeak.faces.mcp.asking import Asking  # noqa: PLC0415
    from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        # Standard output belongs to the protocol; what modules print when they are imported goes to standard error.
        with redirect_stdout(sys.stderr):
            target, store = _load(service, override)
            client = await stack.enter_async_context(open_service(target or service, store=store, **options))
            manifest = await client.discover()
        caller = options["agent_id"] or (derived_id(options["as_name"]) if options["as_name"] else "")
        scopes = _scopes(options, caller)
        backend = ClientBackend(
            client, manifest, caller=caller, scopes=scopes, service=target.service if target else None
        )
        _report_missing(await backend.endpoints(), scopes)
        if target is None:
            store = open_store(MEMORY, role="sole")
            await store.start()
            stack.push_async_callback(store.close)
        assert store is not None
        cases = target.document.cases if target else CaseSettings()
        tools = ToolServer(backend, Asking(store, cases, _acceptance(service, override, store)))
        watching = asyncio.create_task(tools.watch(_LOCAL_INTERVAL if target else _REMOTE_INTERVAL))
        stack.push_async_callback(_cancel, watching)
        stopping = asyncio.create_task(stop_on_signals().wait())
        async with stdio_server() as (reading, writing):
            running = asyncio.create_task(
                tools.server.run(reading, writing, tools.server.create_initialization_options())
            )
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await stack.aclose()
                # A thread is reading standard input, which nothing can interrupt.
                os._exit(0)
            stopping.cancel()
            await running


def _load(service: str, override: str | None) -> tuple[Target | None, Store | None]:
    """Load a target and open its store; return None for the address of a live service."""
    if is_address(service) or "://" in service:
        if override is not None:
            raise click.UsageError("--store is for a service that is loaded; a live service has its own.")
        return None, None
    target = load_target(service)
    place = store_place(service, override)
    # Every MCP client starts a process of its own, so several share the store.
    role: Any = "sole" if place == MEMORY else "shared"
    return target, open_store(place, role=role, durability=target.document.store.durability)


def _scopes(options: dict[str, Any], caller: str) -> Scopes | None:
    """Return the authority of the caller; None if a credential or a registration of the agent decides about it."""
    proved = any(options[name] for name in ("token_file", "client_cert", "agent_key")) or os.environ.get(VARIABLE)
    declared = declared_scopes(options["scopes"])
    return None if proved or (caller and not declared) else Scopes(declared)


def _report_missing(endpoints: Sequence[Endpoint], scopes: Scopes | None) -> None:
    """Tell the user at the start which tools cannot be called: most MCP clients hide the reason later."""
    lacking = [] if scopes is None else [each for each in endpoints if scopes.missing(each.required_scopes)]
    if scopes is not None and lacking:
        wanted = sorted({scope for each in lacking for scope in scopes.missing(each.required_scopes)})
        options = " ".join(f"--scope {scope}" for scope in wanted[:8]) + (" ..." if len(wanted) > 8 else "")
        click.echo(f"note: {len(lacking)} of {len(endpoints)} tools need more authority: --as NAME {options}", err=True)


def _acceptance(service: str, override: str | None, store: Store) -> str | None:
    """Return the command that accepts a case, with `{case}` for its id; None if no other process sees the store."""
    if is_address(service) or store.sole:
        return None
    chosen = "" if override is None else f" --store {shlex.quote(override)}"
    return f"bespeak cases accept {{case}} {shlex.quote(service)}{chosen}"


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
