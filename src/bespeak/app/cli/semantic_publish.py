"""`bespeak semantic publish`: write the documents of the core ontology."""

from __future__ import annotations

from pathlib import Path

import click

from bespeak.app.cli.target_store import written_in_one_step
from bespeak.contract.ontology.namespace import DEFAULT, parse_base
from bespeak.documents.ontology.publication import publish_core
from bespeak.errors import ConfigError
from bespeak.protocol.fault import Fault

_FOR_ALL = 0o644


@click.command()
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(path_type=Path), help="Folder; created if needed."
)
@click.option("--base", default=DEFAULT.base, show_default=True, help="IRI that all names begin with.")
def publish(folder: Path, base: str) -> None:
    """Write the core ontology, its JSON-LD context and its SHACL shapes.

    Serve the files where your base IRI leads. Other tools can then validate semantic profiles with them.

    \b
    Example:
    bespeak semantic publish -o public --base https://acme.example/meaning/
    """
    namespace = parse_base(base)
    if isinstance(namespace, Fault):
        raise ConfigError(namespace.message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the folder {folder}: {error.strerror or error}") from error
    for name, text in publish_core(namespace).items():
        path = folder / name
        with written_in_one_step(path) as write:
            write(text.encode())
        path.chmod(_FOR_ALL)
        click.echo(path)
