"""`bespeak import`: create a deployment from another document format."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from bespeak.contract.service import Service
from bespeak.documents.agis.canonical import parse_agis
from bespeak.documents.agis.document import agis_service, read_agis
from bespeak.documents.openapi.description import MOST_BYTES, Description, select_operations, with_server
from bespeak.documents.projections.deployment_files import HANDLERS, deployment_files
from bespeak.documents.replacement import FolderTakenError, write_folder
from bespeak.documents.rules import UNCLEAR_SERVER
from bespeak.documents.toml_text import find_null
from bespeak.errors import ConfigError
from bespeak.terminal import PATH, CommandFailedError, repeatable_option
from bespeak.terminal.console import plural, print_findings, print_json
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors, printable
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, without_collections

if TYPE_CHECKING:
    from bespeak.documents.adoption.deployment import Imported


_output_option = click.option("-o", "--output", type=PATH, required=True, help="Output folder.")


@click.group("import")
def import_() -> None:
    """Create a deployment folder from another document format."""


@import_.command(short_help="Create a deployment from an AGIS document.")
@click.argument("file", type=PATH)
@_output_option
@click.option("--force", is_flag=True, help="Replace existing files.")
def agis(file: Path, output: Path, force: bool) -> None:
    """Create a deployment from the AGIS document FILE: bespeak.toml, endpoints/*.toml and handlers.py.

    The functions in handlers.py are placeholders that refuse every call until you implement them.

    \b
    Example:
    bespeak import agis menu.agis -o menu
    bespeak serve menu
    """
    from bespeak.documents.adoption.sanitizer import without_instructions  # noqa: PLC0415 - loads the language

    service, unsafe = without_instructions(open_agis_file(file))
    for one in unsafe:
        click.echo(f"{printable(one.what)}: {printable(one.why)}", err=True)
    for endpoint in service.endpoints:
        for name, schema in (("input", endpoint.input_schema), ("output", endpoint.output_schema)):
            null = find_null(dict(schema))
            if null is not None:
                where = f"the {name} schema has null at {null}"
                raise CommandFailedError(f"{endpoint}: {where}, which TOML cannot represent")
    _write(output, deployment_files(service), force=force)
    endpoints = plural(len(service.endpoints), "endpoint")
    click.echo(f"{printable(str(output))}: {endpoints}; implement the functions in {HANDLERS}.py")
    if service.schemas:
        shared = "shared schemas (each endpoint has its own copy)"
        click.echo(f"bespeak.toml cannot hold {shared}; keep {printable(str(file))}.", err=True)


@import_.command(short_help="Create a facade for an HTTP API from OpenAPI.")
@click.argument("source", metavar="FILE|URL")
@_output_option
@click.option("--force", is_flag=True, help="Replace the files of an earlier import; others are kept.")
@repeatable_option(
    "--include",
    metavar="PATTERN",
    text="Import only operations whose tag, path or operationId matches (`*` is a wildcard)",
)
@repeatable_option("--exclude", metavar="PATTERN", text="Skip operations whose tag, path or operationId matches")
@click.option("--server", metavar="URL", help="Base URL of the API, instead of the described ones.")
@click.option("--insecure", is_flag=True, help="Allow plain HTTP from other hosts.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def openapi(  # noqa: PLR0917 - click passes them all by name
    source: str,
    output: Path,
    force: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    server: str | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Create a deployment from an OpenAPI description (2.0, 3.0 or 3.1; JSON or YAML).

    Each operation becomes an endpoint that calls the HTTP API. Missing information is guessed conservatively: each
    doubtful guess is a comment in its file, REVIEW.md lists what could hurt first, and `bespeak review` walks through
    the endpoints.

    \b
    Example:
    bespeak import openapi https://api.acme.example/openapi.json -o acme
    bespeak review acme
    bespeak lint acme
    bespeak serve acme
    """
    from bespeak.documents.adoption.facade import LeftOut  # noqa: PLC0415
    from bespeak.documents.openapi.facade import import_description  # noqa: PLC0415 - slow to load

    _check_server(server)
    _check_free(output, force=force)
    description, findings = open_description(source, insecure=insecure)
    if server is not None:
        # --server resolves the findings about missing servers.
        findings = [finding for finding in findings if finding.rule != UNCLEAR_SERVER.id or finding.severity == "info"]
    if not as_json:
        print_findings(finding for finding in findings if finding.severity != "info")
    description = select_operations(description, include, exclude)
    notes = [LeftOut(finding.pointer or "the description", finding.message) for finding in findings]
    if server is not None:
        description, replaced = with_server(description, server)
        notes[:0] = [
            LeftOut("--server", f"{server} is used instead of {base}, in {plural(count, 'operation')}")
            for base, count in replaced.most_common()
        ]
    with without_collections():
        imported = import_description(description, notes)
    if not imported.facades:
        reason = next((f": {entry.why}" for entry in (*imported.left_out, *imported.notes)), "")
        raise CommandFailedError(f"{source} has no operations that can be called{reason}")
    _finish(output, imported, "openapi", force=force, as_json=as_json)


@import_.command(short_help="Create a governed facade for an MCP server.")
@click.argument("server", nargs=-1, required=True, metavar="COMMAND|URL")
@_output_option
@click.option("--force", is_flag=True, help="Replace the files of an earlier import; reviewed decisions are kept.")
@repeatable_option("--env", metavar="NAME", text="Pass an environment variable to COMMAND")
@repeatable_option("--header", metavar="'NAME: VALUE'", text="Send a header to URL; secrets as ${VAR}")
@click.option("--token-file", metavar="FILE", help="File with a bearer token for URL.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for the server to start and list its tools.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def mcp(  # noqa: PLR0917 - click passes them all by name
    server: tuple[str, ...],
    output: Path,
    force: bool,
    env: tuple[str, ...],
    header: tuple[str, ...],
    token_file: str | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Create a deployment from the tools of an MCP server.

    COMMAND starts a server that speaks MCP over standard input and output: one argument in quotes, or several after
    `--`. URL is one that speaks streamable HTTP. Each tool becomes an endpoint that calls it. What the tools do not say
    is guessed conservatively, as in `bespeak import openapi`, and listed in REVIEW.md.

    \b
    Example:
    bespeak import mcp 'uvx mcp-server-time' -o time
    bespeak import mcp -o files -- npx -y @modelcontextprotocol/server-filesystem /srv/files
    bespeak import mcp https://tools.acme.example/mcp --header 'Authorization: Bearer ${ACME_TOKEN}' -o acme
    bespeak review time
    bespeak serve time
    """
    from bespeak.app.server.http_face import sdk_needed  # noqa: PLC0415
    from bespeak.app.server.mcp_source import named_server, read_tools  # noqa: PLC0415 - slow to load
    from bespeak.documents.deployment.deployment import read_deployment  # noqa: PLC0415
    from bespeak.documents.mcp.facade import import_tools, reviewed_tools  # noqa: PLC0415

    _check_free(output, force=force)
    named = named_server(server, env, header, token_file)
    with sdk_needed():
        listed, notes = asyncio.run(read_tools(named, " ".join(server), timeout))
    if not listed.tools and not listed.offers:
        raise CommandFailedError(f"{brief(' '.join(server))} has no tools, prompts or resources")
    earlier = read_deployment(output)[0].endpoints if output.is_dir() else ()
    imported = import_tools(listed, named, notes, reviewed_tools(earlier, output))
    _finish(output, imported, "mcp", force=force, as_json=as_json)


def _finish(output: Path, imported: Imported, command: str, *, force: bool, as_json: bool) -> None:
    """Write the files of an import and print its summary. Files of others are not replaced, even with --force."""
    for name in imported.files:
        path = output / name
        if path.exists() and not _is_ours(path, command):
            raise ConfigError(f"{path} was not written by this command and will not be replaced. Give another folder.")
    # Endpoint files of an earlier import whose operation no longer exists.
    known = (path for path in sorted((output / "endpoints").glob("*.toml")) if _is_ours(path, command))
    names = (f"endpoints/{path.name}" for path in known)
    _write(output, imported.files, force=force, outdated=[name for name in names if name not in imported.files])
    if not as_json:
        _print_summary(output, imported)
        return
    told = {
        "folder": str(output),
        "endpoints": len(imported.facades),
        "guesses": imported.guesses,
        "variables": [variable.name for variable in imported.variables],
        "left_out": [{"what": entry.what, "why": entry.why} for entry in imported.left_out],
        "notes": [{"what": entry.what, "why": entry.why} for entry in imported.notes],
        "files": list(imported.files),
    }
    print_json(told)


def _check_server(server: str | None) -> None:
    if server is None:
        return
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.fragment)
        usable = usable and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    else:
        if "@" in parts.netloc:
            advice = "Send credentials in a header of the handlers."
            raise ConfigError(f"--server must not contain a user or password. {advice}")
    if not usable:
        raise ConfigError(f"--server must be a URL like https://api.acme.example; got {server[:200]!r}.")


def _check_free(output: Path, *, force: bool) -> None:
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file. Give a folder.")
    if not force and output.is_dir() and any(output.iterdir()):
        raise ConfigError(f"{output} is not empty. Use --force to replace the files of an earlier import.")


def _is_ours(path: Path, command: str) -> bool:
    from bespeak.documents.adoption.facade import made_by  # noqa: PLC0415 - slow to load

    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return any(made_by(command) in file.readline(1_000) for _ in range(4))
    except OSError:
        return False


def _print_summary(output: Path, imported: Imported) -> None:
    shown = printable(str(output))
    endpoints, notes = plural(len(imported.facades), "endpoint"), len(imported.notes)
    guesses = ", ".join(f"{number} {risk}" for risk, number in imported.guesses.items())
    noted = "" if not notes else f", {'one note' if notes == 1 else f'{notes} notes'} on the description"
    click.echo(f"{shown}: {endpoints}, {len(imported.left_out)} left out{noted}")
    click.echo(f"Guesses by risk: {guesses}. Read {shown}/REVIEW.md.")
    if imported.variables:
        names = ", ".join(variable.name for variable in imported.variables)
        click.echo(f"Set {names} before serving.")
    quoted = printable(shlex.quote(str(output)))
    click.echo(f"Then: bespeak review {quoted}; bespeak lint {quoted}; bespeak serve {quoted}")


def _write(folder: Path, files: dict[str, str], *, force: bool, outdated: Collection[str] = ()) -> None:
    """Write all files or none."""
    try:
        write_folder(folder, files, force=force, outdated=outdated)
    except FolderTakenError as error:
        raise ConfigError(f"{folder} already contains {error}. Use --force to replace them.") from error
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error


def open_agis_file(file: Path) -> Service:
    """Read the service of a document, without handlers. Raises CommandFailedError if the document has errors."""
    text = read_text(file, MAX_BYTES)
    tree = text if isinstance(text, Diagnostic) else parse_agis(text, str(file))
    if isinstance(tree, Diagnostic):
        print_findings([tree])
        raise CommandFailedError(f"{file} cannot be read")
    document, findings = read_agis(tree)
    print_findings(findings)
    if document is None or has_errors(findings):
        raise CommandFailedError(f"{file} has errors; fix them first")
    return agis_service(document)


def open_description(source: str, *, insecure: bool) -> tuple[Description, list[Diagnostic]]:
    """Read the description at a path or a URL. Raises CommandFailedError if it cannot be used."""
    from bespeak.documents.openapi.reader import read_description  # noqa: PLC0415 - slow to load

    text, name = _fetch(source, insecure=insecure) if "://" in source else (_read_file(source), source)
    description, findings = read_description(text, name)
    if description is None:
        print_findings(findings)
        raise CommandFailedError(f"{brief(source)[1:-1]} cannot be imported")
    return description, findings


def _read_file(source: str) -> bytes:
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path} is not a regular file. Give a JSON or YAML file.")
        if path.stat().st_size > MOST_BYTES:
            raise CommandFailedError(f"{path} is larger than {MOST_BYTES // 1_000_000} MB. Split the description.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _fetch(source: str, *, insecure: bool) -> tuple[bytes, str]:
    from bespeak.agent.discovery.fetcher import Fetcher  # noqa: PLC0415
    from bespeak.agent.discovery.web_document import OPENAPI, Fetched  # noqa: PLC0415
    from bespeak.protocol import address_guard as web  # noqa: PLC0415 - slow to load

    address = web.parse_web_address(source, insecure=insecure)
    if isinstance(address, web.AddressFault):
        raise ConfigError(str(address))
    # The user chose this address, so it may be in any network; redirect targets may not.
    url, guard = str(address), web.AddressGuard(web.typed_host(address.origin.host, address.origin.port))

    async def get() -> Fetched:
        fetcher = Fetcher(guard, insecure=insecure)
        try:
            return await fetcher.get(url, OPENAPI, robots=False)
        finally:
            await fetcher.close()

    fetched = asyncio.run(get())
    if fetched.fault is not None:
        raise CommandFailedError(f"{brief(source)}: {fetched.fault.message}")
    return fetched.body, fetched.final_url
