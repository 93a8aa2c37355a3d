"""`bespeak schema`: the JSON Schemas of documents, for editors and other tools."""

from __future__ import annotations

import click

from bespeak.app.cli.console import line, print_lines
from bespeak.documents.schemas import SCHEMAS, schema_text


@click.command()
@click.argument("name", type=click.Choice(list(SCHEMAS)), metavar="[NAME]", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of a kind of document, for editors and other tools; without NAME, list the kinds.

    \b
    Example:
    bespeak schema agis > agis.schema.json
    """
    if name is not None:
        click.echo(schema_text(name), nl=False)
        return
    width = max(map(len, SCHEMAS))
    print_lines(line((f"{key:<{width}}", "cyan"), f"  {entry.summary}") for key, entry in SCHEMAS.items())
