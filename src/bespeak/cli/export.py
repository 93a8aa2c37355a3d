"""`bespeak export`: a service in the words of other documents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bespeak.cli.agis_file import open_agis
from bespeak.cli.console import print_findings
from bespeak.cli.main import RefusedError
from bespeak.cli.service import connection_options, open_service
from bespeak.contract.service import Service
from bespeak.documents.agis_text import write_json, write_yaml
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import ConfigError
from bespeak.projections.agis_document import project_agis
from bespeak.server.target import load_target


@click.group()
def export() -> None:
    """Write a service as another kind of document."""


@export.command()
@click.argument("service")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file and not to standard output.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--to", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="The form to write.")
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
        raise RefusedError(f"{service} has no endpoints of its own, and an AGIS document has at least one")
    document = project_agis(found)
    text = write_json(document) if to == "json" else write_yaml(document)
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
        manifest = await client.discover()
        return replace(_service(manifest), agtp=uri)


def _service(manifest: ManifestDocument) -> Service:
    return Service(
        identity=manifest.server,
        endpoints=manifest.own_endpoints,
        policies=manifest.policies,
        document_version=manifest.document_version or None,
    )
