"""`bespeak schema`: print the JSON Schemas of document formats."""

from __future__ import annotations

import click

from bespeak.documents.schemas import SCHEMAS, schema_text
from bespeak.terminal.console import line, print_lines


@click.command()
@click.argument("name", type=click.Choice(list(SCHEMAS)), metavar="[NAME]", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of a document format. Without NAME, list the formats.

    \b
    Example:
    bespeak schema agis > agis.schema.json
    """
    if name is not None:
        click.echo(schema_text(name), nl=False)
        return
    width = max(map(len, SCHEMAS))
    print_lines(line((f"{key:<{width}}", "cyan"), f"  {entry.summary}") for key, entry in SCHEMAS.items())
