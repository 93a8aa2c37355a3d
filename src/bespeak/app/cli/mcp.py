"""`bespeak mcp`: a service as an MCP server over standard input and output; `install` adds it to an MCP client."""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.core import ParameterSource

from bespeak.app.cli.service import SECRETS, connection_options, declared_scopes, is_address, open_service
from bespeak.app.server.http_face import sdk_needed
from bespeak.app.server.log import LEVELS, log_to_stderr
from bespeak.app.server.serving import run, stop_on_signals
from bespeak.app.server.target import Target, load_target
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.folder import is_folder, is_there
from bespeak.documents.deployment.server_settings import ALL, RESULT_BOUNDS, McpSettings
from bespeak.documents.mcp.clients import (
    CLIENTS,
    McpClient,
    ServerEntry,
    add_server,
    remote_entry,
    started_entry,
    user_folder,
    write_configuration,
)
from bespeak.documents.replacement import replace_bytes, replace_text
from bespeak.errors import ConfigError
from bespeak.protocol.address import is_web, split_url
from bespeak.protocol.exchange.principal import Scopes, derived_id
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.state.store.settings import DEFAULT_FILE, MEMORY, POSTGRES, CaseSettings, has_password, open_store
from bespeak.state.store.store import Store
from bespeak.terminal import CommandFailedError, repeatable_option
from bespeak.terminal.console import choice_option
from bespeak.terminal.deployment import names_attribute, store_place
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

if TYPE_CHECKING:
    from bespeak.app.server.mcp_stdio import Wire
    from bespeak.runtime.server import Server

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")  # names that every client accepts
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST: Final = 1 << 24  # maximum bytes of a configuration: Claude Code keeps other things in the same file
_SENT: Final = {"agent_id", "as_name", "scopes"}  # options that become headers of a remote server
_TYPED: Final = ParameterSource.COMMANDLINE


class _Installation(NamedTuple):
    client: McpClient
    name: str
    service: str
    variables: tuple[str, ...]
    given: list[click.Option]  # options that were typed
    options: Mapping[str, Any]


def make_install(passed: Sequence[click.Option]) -> click.Command:
    """Build the command; `passed` are the options of `bespeak mcp`, which the entry repeats."""

    @click.command("install")
    @click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
    @click.argument("service")
    @click.option("--name", help="Name of the server in the client.  [default: from SERVICE]")
    @click.option("--project", is_flag=True, help="Write the configuration of the project in the current folder.")
    @repeatable_option("--env", "variables", metavar="NAME", text="Pass this environment variable on")
    @click.option("--remote", is_flag=True, help="SERVICE is the URL of an MCP server, which the client connects to.")
    @click.option("--dry-run", is_flag=True, help="Show the changes of the file, and do not write it.")
    @click.pass_context
    def install(
        context: click.Context,
        /,
        *,
        client: str,
        service: str,
        name: str | None,
        project: bool,
        variables: tuple[str, ...],
        remote: bool,
        dry_run: bool,
        **options: Any,
    ) -> None:
        """Add SERVICE to the configuration of an MCP client, which then starts `bespeak mcp SERVICE` by itself.

        CLIENT is claude (Claude Desktop), claude-code, cursor or vscode. Other entries of its file stay as they are,
        and the file before the change is kept beside it, with the suffix .bak. The options of `bespeak mcp` are
        written into the entry, paths as absolute ones. A token is never written: the entry names the variable
        BESPEAK_TOKEN or BESPEAK_KEY if it is set now, or the file of --token-file or --key-file.

        Examples:

        \b
        bespeak mcp install claude examples/hotel --as claude --scope booking:room --dry-run
        bespeak mcp install vscode openapi.yaml --project --env API_KEY
        bespeak mcp install cursor https://rooms.acme.example/mcp --remote
        """
        chosen = CLIENTS[client]
        place = _place(chosen, project=project)
        given = [option for option in passed if context.get_parameter_source(option.name or "") is _TYPED]
        names = _variables(chosen, variables, options)
        wish = _Installation(chosen, _name(service, name), service, names, given, options)
        _write(chosen, place, wish.name, _remote(wish) if remote else _started(wish), dry_run=dry_run)

    install.params.extend(passed)
    return install


def _name(service: str, given: str | None) -> str:
    if given is None:
        place = service.rpartition(":")[0] if names_attribute(service) else service
        path = Path(place)
        if is_address(service):
            text = _host(service)
        elif is_folder(path):
            text = path.resolve().name
        else:
            text = path.stem if is_there(path) else place.rpartition(".")[2]
        given = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:64]
        given = given if given[:1].isalpha() else f"service-{given}"[:64].strip("-")
    if _NAME.fullmatch(given) is None:
        allowed = "a letter and up to 63 letters, digits, hyphens and underscores"
        raise click.UsageError(f"--name must be {allowed}; got {given!r}.")
    return given


def _host(address: str) -> str:
    """Return the host of an address; empty if it has none, or credentials before it."""
    try:
        parts = split_url(address)
        return "" if "@" in parts.netloc else parts.hostname or ""
    except ValueError:
        return ""


def _variables(client: McpClient, given: Sequence[str], options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables to pass on; a token or key that is set is among them, as it is for `bespeak mcp` itself."""
    for name in given:
        if _VARIABLE.fullmatch(name) is None:
            raise click.UsageError(f"--env takes the name of a variable, without its value; got {name[:40]!r}.")
    filed = options["token_file"] is not None or options["key_file"] is not None
    secret = [] if filed else [name for name in SECRETS if os.environ.get(name)][:1]
    names = tuple(dict.fromkeys((*secret, *given)))
    if names and client.variable is None:
        advice = "Use --token-file or --key-file." if secret else "Read it from a file in the service itself."
        why = f"{client.title} does not pass {names[0]} on to servers, and its value is never written"
        raise CommandFailedError(f"{why}. {advice}")
    return names


def _started(wish: _Installation) -> ServerEntry:
    """Build the entry of a process, after the target was loaded once: clients hide why a process ends."""
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("MCP needs the official SDK: pip install 'bespeak[mcp]'")
    environment: dict[str, str] = {}
    service, arguments = wish.service, [*_written(wish)]
    if not is_address(service):
        load_target(service)
        place, colon, attribute = service.rpartition(":") if names_attribute(service) else (service, "", "")
        if is_folder(Path(place)) or is_there(Path(place)):
            service = f"{Path(place).absolute()}{colon}{attribute}"
        else:
            # A module is imported from the current folder, and clients start processes in folders of their own.
            environment["PYTHONPATH"] = str(Path.cwd())
            arguments += [] if wish.options["override"] else ["--store", str(Path.cwd() / DEFAULT_FILE)]
    command = (sys.executable, service, *arguments)
    return started_entry(wish.client, wish.name, command, environment, wish.variables)


def _remote(wish: _Installation) -> ServerEntry:
    client, url, options = wish.client, wish.service, wish.options
    if not client.takes_urls:
        advice = f"Add {url} as a connector in its settings, or leave --remote out."
        raise CommandFailedError(f"{client.title} starts servers only. {advice}")
    if not is_web(url) or not _host(url):
        raise click.UsageError("--remote takes the https URL of an MCP server, without credentials.")
    unsent = [option.opts[0] for option in wish.given if option.name not in _SENT]
    unsent += ["--env" for variable in wish.variables if variable not in SECRETS]
    if unsent:
        raise click.UsageError(f"{unsent[0]} is for a server that the client starts; leave it or --remote out.")
    agent_id = options["agent_id"] or (derived_id(options["as_name"]) if options["as_name"] else None)
    headers = {"Agent-ID": agent_id, "Authority-Scope": ", ".join(declared_scopes(options["scopes"]))}
    sent = {header: value for header, value in headers.items() if value}
    return remote_entry(client, wish.name, url, sent, next(iter(wish.variables), None))


def _written(wish: _Installation) -> Iterator[str]:
    """Yield the options as `bespeak mcp` takes them, with absolute paths."""
    for option in wish.given:
        value = wish.options[option.name or ""]
        if option.is_flag:
            yield option.opts[0]
        else:
            for one in value if option.multiple else (value,):
                yield from (option.opts[0], _absolute(option, one))


def _absolute(option: click.Option, value: Any) -> str:
    if option.name == "override" and value != MEMORY:
        if has_password(value):
            raise CommandFailedError(
                "--store contains a password, which is never written. Name the store in `[store] place` of "
                "bespeak.toml, like postgresql://user:${DB_PASSWORD}@host/name, and give --env DB_PASSWORD."
            )
        return value if value.startswith(POSTGRES) else str(Path(value).absolute())
    return str(value.absolute()) if isinstance(value, Path) else str(value)


def _place(client: McpClient, *, project: bool) -> Path:
    if not project:
        return user_folder(client, sys.platform, os.environ).joinpath(*client.user)
    if client.project is None:
        raise CommandFailedError(f"{client.title} has no configuration for a project; leave --project out.")
    return Path.cwd().joinpath(*client.project)


def _write(client: McpClient, path: Path, name: str, entry: ServerEntry, *, dry_run: bool) -> None:
    before = read_text(path, _LARGEST) if path.exists() else ""
    if isinstance(before, Diagnostic):
        raise CommandFailedError(f"{path} was not changed: {before.message}.")
    after = add_server(before, str(path), client, name, entry)
    if isinstance(after, Fault):
        pasted = write_configuration(client, name, entry)
        raise CommandFailedError(f"{path} was not changed: {after.message}. Add the server to it yourself:\n{pasted}")
    if dry_run:
        lines = (before.splitlines(), after.splitlines())
        # Little context: the entries of other servers may hold their secrets.
        click.echo("\n".join(difflib.unified_diff(*lines, str(path), str(path), n=1, lineterm="")))
        return
    if after == before:
        click.echo(f"{client.title} has {name} already: {path}")
        return
    kept = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if before:
            backup = path.with_name(f"{path.name}.bak")
            replace_bytes(backup, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
            kept = f" The file before the change is {backup.name}."
        replace_text(path, after, create=True)
    except OSError as error:
        raise CommandFailedError(f"{path} was not changed: {error.strerror or error}.") from error
    click.echo(f"Added {name} to {path}.{kept}\n{client.advice}")


# Seconds between looks for new endpoints: a loaded service answers at once, another one is asked over the network.
_LOCAL_INTERVAL: Final = 1.0
_REMOTE_INTERVAL: Final = 60.0
_MOST_NAMED: Final = 20


def _check_most(_: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
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
@choice_option("--log", "level", of=LEVELS, default="warning", help="Log level on standard error.")
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
) -> None:
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


assert isinstance(mcp, _Mcp)
mcp.commands = {"install": make_install([option for option in mcp.params if isinstance(option, click.Option)])}


async def _serve(
    service: str, override: str | None, chosen: dict[str, Any], options: dict[str, Any], wire: Wire
) -> None:
    from bespeak.app.server.mcp_stdio import ClientBackend, serve_stdio  # noqa: PLC0415
    from bespeak.faces.asking import Asking  # noqa: PLC0415
    from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        target, store = _load(service, override)
        servers: list[Server] = []
        opening = open_service(target or service, store=store, face="mcp", opened=servers.append, **options)
        client = await stack.enter_async_context(opening)
        manifest = await client.discover()
        caller = options["agent_id"] or (derived_id(options["as_name"]) if options["as_name"] else "")
        scopes, loaded = _scopes(options, caller), target.service if target else None
        server = servers[0] if servers else None
        backend = ClientBackend(client, manifest, caller=caller, scopes=scopes, service=loaded, server=server)
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
        if tools.catalog.missing:
            there = ", ".join(tools.catalog.namespaces[:_MOST_NAMED])
            wrong = tools.catalog.missing[0][:80]
            raise click.UsageError(f"no endpoint is in the namespace {wrong!r}; there are {there}")
        watching = asyncio.create_task(tools.watch(_LOCAL_INTERVAL if target else _REMOTE_INTERVAL))
        stack.push_async_callback(cancel_tasks, watching)
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
    given = any(options[name] for name in ("token_file", "key_file", "client_cert", "agent_key"))
    proved = given or any(os.environ.get(name) for name in SECRETS)
    declared = declared_scopes(options["scopes"])
    return None if proved or (caller and not declared) else Scopes(declared)


def _report_missing(endpoints: Sequence[Endpoint], scopes: Scopes | None) -> None:
    """Tell the user at the start which tools cannot be called: most MCP clients hide the reason later."""
    lacking = [] if scopes is None else [each for each in endpoints if scopes.missing(each.required_scopes)]
    if scopes is not None and lacking:
        wanted = sorted({scope for each in lacking for scope in scopes.missing(each.required_scopes)})
        options = shlex.join([word for scope in wanted[:8] for word in ("--scope", scope)])
        options += " ..." if len(wanted) > 8 else ""
        click.echo(f"note: {len(lacking)} of {len(endpoints)} tools need more authority: --as NAME {options}", err=True)


def _acceptance(service: str, override: str | None, store: Store) -> str | None:
    """Return the command that accepts a case, with `{case}` for its id; None if no other process sees the store."""
    if is_address(service) or store.sole:
        return None
    chosen = "" if override is None else f" --store {shlex.quote(override)}"
    return f"bespeak cases accept {{case}} {shlex.quote(service)}{chosen}"
