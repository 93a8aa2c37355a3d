"""`bespeak mcp install`: add a service to the configuration of an MCP client."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.service import VARIABLE, declared_scopes, derived_id, is_address
from bespeak.app.server.state import names_attribute
from bespeak.app.server.target import load_target
from bespeak.documents.deployment.folder import is_folder, is_there
from bespeak.documents.files.file_replacement import replace_bytes, replace_text
from bespeak.documents.mcp_clients.client import CLIENTS, McpClient, user_folder
from bespeak.documents.mcp_clients.configuration import add_server, write_configuration
from bespeak.documents.mcp_clients.entry import Entry, remote_entry, started_entry
from bespeak.errors import ConfigError
from bespeak.protocol.address import split_url
from bespeak.protocol.fault import Fault
from bespeak.protocol.locator import is_web
from bespeak.state.store.settings import DEFAULT_FILE, MEMORY, POSTGRES, has_password
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""Names that every client accepts."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST: Final = 1 << 24
"""Maximum bytes of a configuration: Claude Code keeps other things in the same file."""
_SENT: Final = {"agent_id", "as_name", "scopes"}
"""Options that become headers of a remote server."""
_TYPED: Final = ParameterSource.COMMANDLINE


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be added."""

    client: McpClient
    name: str
    service: str
    variables: tuple[str, ...]
    given: tuple[click.Option, ...]
    """Options that were typed."""
    options: Mapping[str, Any]


def make_install(passed: Sequence[click.Option]) -> click.Command:
    """Build the command; `passed` are the options of `bespeak mcp`, which the entry repeats."""

    @click.command("install")
    @click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
    @click.argument("service")
    @click.option("--name", help="Name of the server in the client.  [default: from SERVICE]")
    @click.option("--project", is_flag=True, help="Write the configuration of the project in the current folder.")
    @click.option(
        "--env", "variables", multiple=True, metavar="NAME", help="Pass this environment variable on; repeatable."
    )
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
    ) -> int:
        """Add SERVICE to the configuration of an MCP client, which then starts `bespeak mcp SERVICE` by itself.

        CLIENT is claude (Claude Desktop), claude-code, cursor or vscode. Other entries of its file stay as they are,
        and the file before the change is kept beside it, with the suffix .bak. The options of `bespeak mcp` are
        written into the entry, paths as absolute ones. A token is never written: the entry names the variable
        BESPEAK_TOKEN if it is set now, or the file of --token-file.

        Examples:

        \b
        bespeak mcp install claude examples/hotel --as claude --scope booking:room --dry-run
        bespeak mcp install vscode openapi.yaml --project --env API_KEY
        bespeak mcp install cursor https://rooms.acme.example/mcp --remote
        """
        chosen = CLIENTS[client]
        place = _place(chosen, project=project)
        given = [option for option in passed if context.get_parameter_source(option.name or "") is _TYPED]
        wish = _Wish(
            chosen, _name(service, name), service, _variables(chosen, variables, options), tuple(given), options
        )
        entry = _remote(wish) if remote else _started(wish)
        _write(chosen, place, wish.name, entry, dry_run=dry_run)
        return 0

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
        raise click.UsageError(
            f"--name must be a letter and up to 63 letters, digits, hyphens and underscores; got {given!r}."
        )
    return given


def _host(address: str) -> str:
    """Return the host of an address; empty if it has none, or credentials before it."""
    try:
        parts = split_url(address)
        return "" if "@" in parts.netloc else parts.hostname or ""
    except ValueError:
        return ""


def _variables(client: McpClient, given: Sequence[str], options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables to pass on. The token is among them if it is set, as it is for `bespeak mcp` itself."""
    for name in given:
        if _VARIABLE.fullmatch(name) is None:
            raise click.UsageError(f"--env takes the name of a variable, without its value; got {name[:40]!r}.")
    token = [VARIABLE] if os.environ.get(VARIABLE) and options["token_file"] is None else []
    names = tuple(dict.fromkeys((*token, *given)))
    if names and client.variable is None:
        advice = "Use --token-file for a token." if VARIABLE in names else "Read it from a file in the service itself."
        raise CommandFailedError(
            f"{client.title} does not pass {names[0]} on to servers, and its value is never written. {advice}"
        )
    return names


def _started(wish: _Wish) -> Entry:
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


def _remote(wish: _Wish) -> Entry:
    client, url, options = wish.client, wish.service, wish.options
    if not client.takes_urls:
        raise CommandFailedError(
            f"{client.title} starts servers only. Add {url} as a connector in its settings, or leave --remote out."
        )
    if not is_web(url) or not _host(url):
        raise click.UsageError("--remote takes the https URL of an MCP server, without credentials.")
    unsent = [option.opts[0] for option in wish.given if option.name not in _SENT]
    unsent += ["--env" for variable in wish.variables if variable != VARIABLE]
    if unsent:
        raise click.UsageError(f"{unsent[0]} is for a server that the client starts; leave it or --remote out.")
    agent_id = options["agent_id"] or (derived_id(options["as_name"]) if options["as_name"] else None)
    scopes = ", ".join(declared_scopes(options["scopes"]))
    headers = {"Agent-ID": agent_id, "Authority-Scope": scopes}
    sent = {header: value for header, value in headers.items() if value}
    return remote_entry(client, wish.name, url, sent, VARIABLE if wish.variables else None)


def _written(wish: _Wish) -> Iterator[str]:
    """Yield the options as `bespeak mcp` takes them, with absolute paths."""
    for option in wish.given:
        value = wish.options[option.name or ""]
        if option.is_flag:
            yield option.opts[0]
            continue
        for one in value if option.multiple else (value,):
            yield option.opts[0]
            yield _absolute(option, one)


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


def _write(client: McpClient, path: Path, name: str, entry: Entry, *, dry_run: bool) -> None:
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
