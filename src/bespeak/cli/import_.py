"""`bespeak import`: a deployment made of another kind of document."""

from __future__ import annotations

from pathlib import Path

import click

from bespeak.cli.agis_file import open_agis
from bespeak.cli.main import RefusedError
from bespeak.contract.service import Service
from bespeak.diagnostics.printable import printable
from bespeak.documents.file_replacement import replace_text
from bespeak.documents.toml_text import find_null
from bespeak.errors import ConfigError
from bespeak.projections.deployment_files import HANDLERS, deployment_files


@click.group("import")
def import_() -> None:
    """Make a deployment folder of another kind of document."""


@import_.command(short_help="Make a deployment of an AGIS document.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def agis(file: Path, output: Path, force: bool) -> int:
    """Make a deployment of the AGIS document FILE: bespeak.toml, endpoints/*.toml and handlers.py.

    No document says who answers: the functions in handlers.py refuse every call until they are written.

    \b
    Example:
    bespeak import agis menu.agis -o menu
    bespeak serve menu
    """
    service = open_agis(file)
    for endpoint in service.endpoints:
        for name, schema in (("input", endpoint.input_schema), ("output", endpoint.output_schema)):
            null = find_null(dict(schema))
            if null is not None:
                raise RefusedError(f"{endpoint}: the {name} has null at {null}, which an endpoint file cannot say")
    files = deployment_files(service)
    _write(output, files, force=force)
    count = len(service.endpoints)
    click.echo(
        f"{printable(str(output))}: {count} endpoint{'' if count == 1 else 's'}; write the functions in {HANDLERS}.py"
    )
    left = _left_out(service)
    if left:
        kept = printable(str(file))
        click.echo(f"bespeak.toml has no place for {', '.join(left)}: keep {kept} beside it.", err=True)
    return 0


def _write(folder: Path, files: dict[str, str], *, force: bool) -> None:
    """Write all files or none that would replace another."""
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        raise ConfigError(f"{folder} has {', '.join(there[:5])} already. Use --force to replace them.")
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, text, create=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error


def _left_out(service: Service) -> list[str]:
    parts = {
        "the name of the service": service.identity.name,
        "its description": service.description,
        "shared schemas, which each endpoint has its own copy of": service.schemas,
    }
    return [name for name, value in parts.items() if value]
