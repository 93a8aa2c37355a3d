"""`bespeak mcp`: a service as an MCP server over standard input and output; `bespeak mcp install` before it."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from bespeak.app.cli.mcp_install import make_install
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
from bespeak.documents.deployment.server_settings import ALL, RESULT_BOUNDS, McpSettings
from bespeak.protocol.exchange.scope import Scopes
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import MEMORY, CaseSettings
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from bespeak.app.server.mcp_stdio import Wire
    from bespeak.faces.mcp.catalog import Catalog
    from bespeak.runtime.server import Server

_LOCAL_INTERVAL: Final = 1.0
_REMOTE_INTERVAL: Final = 60.0
"""Seconds between looks for new endpoints: a loaded service answers at once, another one is asked over the network."""
_MOST_NAMED: Final = 20


def _check_most(_: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    """Refuse a text that is not a number of tools."""
    if given is None or given == ALL or (given.isascii() and given.isdecimal() and int(given[:20]) > 0):
        return given
    raise click.BadParameter(f"must be a number above 0, or {ALL}; got {given[:80]!r}", param=parameter)


class _Mcp(click.Command):
    """A command that is also the name of others: a first word that names one of these is not SERVICE."""

    commands: dict[str, click.Command]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        named = self.commands.get(args[0]) if args else None
        if named is None:
            return super().make_context(info_name, args, parent, **extra)
        return named.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)


@click.command(cls=_Mcp)
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
@click.option(
    "--toolset",
    "toolsets",
    multiple=True,
    metavar="NAMESPACE",
    help="Serve only the endpoints of this namespace, the first segment of their paths. Repeatable.",
)
@click.option(
    "--tools-listed",
    metavar="N",
    callback=_check_most,
    help="List a search instead of more tools than this; `all` lists any number.  [default: 40]",
)
@click.option(
    "--max-result",
    type=click.IntRange(*RESULT_BOUNDS),
    metavar="N",
    help="Cut results that have more characters than this.  [default: 50000]",
)
@connection_options
def mcp(
    service: str,
    override: str | None,
    level: str,
    *,
    toolsets: tuple[str, ...],
    tools_listed: str | None,
    max_result: int | None,
    **options: Any,
) -> int:
    """Serve the endpoints of SERVICE as MCP tools over standard input and output.

    SERVICE is a folder, an .agis, .toml or .py file, module:app, an OpenAPI file (JSON or YAML), or the address of a
    live service: agtp://HOST or https://HOST. Every tool is called with the authority of the options, through the
    same checks as any other call. Before an irreversible call, the user is asked; if the MCP client cannot ask, the
    call waits for `bespeak cases accept`.

    `bespeak mcp install CLIENT SERVICE` adds SERVICE to Claude, Cursor or VS Code.

    Examples:

    \b
    bespeak mcp examples/hotel --as claude --scope booking:room --scope rooms:read
    bespeak mcp openapi.yaml
    bespeak mcp agtp://rooms.acme.example --agent-id ID --scope rooms:read
    """
    with sdk_needed():
        import bespeak.faces.mcp.server  # noqa: F401, PLC0415 - slow to load
        from bespeak.app.server.mcp_stdio import claim  # noqa: PLC0415
    log_to_stderr(level)
    chosen: dict[str, Any] = {"toolsets": toolsets} if toolsets else {}
    if max_result is not None:
        chosen["max_result"] = max_result
    if tools_listed is not None:
        chosen["tools_listed"] = 0 if tools_listed == ALL else int(tools_listed[:20])
    # Standard output belongs to the protocol; what modules print when they are imported goes to standard error.
    run(_serve(service, override, chosen, options, claim()))
    return 0


assert isinstance(mcp, _Mcp)
mcp.commands = {"install": make_install([option for option in mcp.params if isinstance(option, click.Option)])}


async def _serve(
    service: str, override: str | None, chosen: dict[str, Any], options: dict[str, Any], wire: Wire
) -> None:
    from bespeak.app.server.mcp_stdio import serve_stdio  # noqa: PLC0415
    from bespeak.faces.asking import Asking  # noqa: PLC0415
    from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        target, store = _load(service, override)
        servers: list[Server] = []
        opening = open_service(target or service, store=store, face="mcp", opened=servers.append, **options)
        client = await stack.enter_async_context(opening)
        manifest = await client.discover()
        caller = options["agent_id"] or (derived_id(options["as_name"]) if options["as_name"] else "")
        scopes = _scopes(options, caller)
        backend = ClientBackend(
            client,
            manifest,
            caller=caller,
            scopes=scopes,
            service=target.service if target else None,
            server=servers[0] if servers else None,
        )
        _report_missing(await backend.endpoints(), scopes)
        if target is None:
            store = open_store(MEMORY, role="sole")
            await store.start()
            stack.push_async_callback(store.close)
        assert store is not None
        cases = target.document.cases if target else CaseSettings()
        settings = replace(target.document.mcp if target else McpSettings(), **chosen)
        tools = ToolServer(backend, Asking(store, cases, _acceptance(service, override, store)), settings)
        await tools.refresh()
        _check_toolsets(tools.catalog)
        watching = asyncio.create_task(tools.watch(_LOCAL_INTERVAL if target else _REMOTE_INTERVAL))
        stack.push_async_callback(_cancel, watching)
        await serve_stdio(tools.server, wire, stop_on_signals())
    # Threads may wait for the client or for the service, and nothing can interrupt them.
    sys.stderr.flush()
    os._exit(0)


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


def _check_toolsets(catalog: Catalog) -> None:
    """Refuse a toolset that no endpoint belongs to."""
    if catalog.missing:
        there = ", ".join(catalog.namespaces[:_MOST_NAMED])
        raise click.UsageError(f"no endpoint is in the namespace {catalog.missing[0][:80]!r}; there are {there}")


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
