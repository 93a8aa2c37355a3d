"""`bespeak export`: a service in the words of other documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bespeak.app.cli.agis_file import open_agis
from bespeak.app.cli.console import print_findings
from bespeak.app.cli.exported import live_service, open_exported
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.service import connection_options, open_service
from bespeak.app.server.target import load_target
from bespeak.contract.service import Service
from bespeak.documents.agis.text import write_json, write_yaml
from bespeak.documents.projections.agis_document import project_agis
from bespeak.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])

_URL = click.option("--url", metavar="URL", help="Where the service is on HTTP, if its configuration does not say it.")


def _form(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--to", type=click.Choice(["yaml", "json"]), default=default, show_default=True, help="The form to write."
    )


def _output(command: Command) -> Command:
    """The options of every document that is written somewhere."""
    place = click.Path(path_type=Path)
    command = click.option("--force", is_flag=True, help="Replace an existing file.")(command)
    return click.option("-o", "--output", type=place, help="Write to this file and not to standard output.")(command)


@click.group()
def export() -> None:
    """Write a service as another kind of document."""


@export.command()
@click.argument("service")
@_output
@_form("yaml")
@connection_options
def agis(service: str, output: Path | None, force: bool, to: str, **options: Any) -> None:
    """Write SERVICE as an AGIS document.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. Of an AGIS document nothing
    needs to be bound. The document of a live service has no descriptions of errors, because its manifest has none.

    \b
    Examples:
    bespeak export agis examples/hotel -o hotel.agis
    bespeak export agis agtp://127.0.0.1 --to json
    """
    found = asyncio.run(_live(service, options)) if "://" in service else _local(service)
    if all(endpoint.builtin for endpoint in found.endpoints):
        raise CommandFailedError(f"{service} has no endpoints of its own, and an AGIS document has at least one")
    _write(_text(project_agis(found), to), output, force=force)


@export.command()
@click.argument("service")
@_output
@_form("json")
@_URL
@connection_options
def openapi(service: str, output: Path | None, force: bool, to: str, url: str | None, **options: Any) -> None:
    """Write the HTTP face of SERVICE as an OpenAPI 3.1 document.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. It is what the service has at
    /openapi.json. The document of a live service says nothing of credentials and limits, because its manifest does not.

    \b
    Examples:
    bespeak export openapi examples/hotel -o openapi.json
    bespeak export openapi agtp://127.0.0.1 --url https://rooms.example --to yaml
    """
    from bespeak.documents.projections.openapi.document import project_openapi  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    document = project_openapi(
        found.service,
        found.service.endpoints,
        found.http,
        found.auth.modes,
        version=found.version,
        keys_required=found.keys_required,
        catalog_warnings=found.catalog_warnings,
    )
    _write(_text(document, to), output, force=force)


@export.command()
@click.argument("service")
@click.option("--part", metavar="NAME", help="Write this one of the documents that a large service is divided into.")
@_output
@_URL
@connection_options
def ai(service: str, part: str | None, output: Path | None, force: bool, url: str | None, **options: Any) -> None:
    """Write what SERVICE has at /.well-known/ai.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app.

    \b
    Examples:
    bespeak export ai examples/hotel
    bespeak export ai examples/hotel --url https://rooms.example -o ai.json
    """
    from bespeak.documents.projections.ai_discovery import PATH, project_ai  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    documents = project_ai(found.service, found.service.endpoints, found.http, found.auth.modes, updated=found.updated)
    assert documents is not None, "there is an endpoint"
    if part is not None and part not in documents.parts:
        advice = f"it has {', '.join(documents.parts)}" if documents.parts else "one document has all of it"
        raise ConfigError(f"{service} has no part {part!r}; {advice}")
    content = documents.main if part is None else documents.parts[part]
    _write(content.decode() + "\n", output, force=force)
    if documents.parts and part is None:
        names = ", ".join(documents.parts)
        click.echo(f"bespeak: what does not fit is at {PATH}/NAME: {names} (--part NAME writes one)", err=True)


@export.command(short_help="Write SERVICE as an llms.txt.")
@click.argument("service")
@_output
@_URL
@connection_options
def llms(service: str, output: Path | None, force: bool, url: str | None, **options: Any) -> None:
    """Write SERVICE as an llms.txt: its endpoints in a page for language models.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app.

    \b
    Examples:
    bespeak export llms examples/hotel -o llms.txt
    """
    from bespeak.app.server.http_pages import ABOUT  # noqa: PLC0415
    from bespeak.documents.projections.llms_text import project_llms  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    _write(project_llms(found.service, found.service.endpoints, found.http, ABOUT), output, force=force)


def _text(document: dict[str, Any], to: str) -> str:
    return write_json(document) if to == "json" else write_yaml(document)


def _write(text: str, output: Path | None, *, force: bool) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{output} exists already. Use --force to replace it.") from None
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from error


def _local(target: str) -> Service:
    if target.endswith(".agis"):
        return open_agis(Path(target))
    loaded = load_target(target)
    print_findings(loaded.findings)
    return loaded.service


async def _live(uri: str, options: dict[str, Any]) -> Service:
    async with open_service(uri, **options) as client:
        return live_service(client, await client.discover(), uri)
