"""`bespeak methods` and `bespeak schema`: look up the standard methods, and the JSON Schemas of document formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from bespeak.contract.standard.definition import StandardMethod, object_of
from bespeak.contract.standard.methods import CATEGORIES, STANDARD
from bespeak.documents.schemas import SCHEMAS, schema_text
from bespeak.terminal.console import json_option, line, members, print_lines, print_result


@click.group()
def methods() -> None:
    """Look up the standard methods: what they do, and what they take.

    A server offers those that bespeak.toml enables: [methods] enable = ["*"], or names, or categories.
    """


@methods.command("list")
@click.option("--category", type=click.Choice(CATEGORIES), help="Only methods of this category.")
@json_option
def list_methods(category: str | None, as_json: bool) -> None:
    """List the methods with their category and impact."""
    found = [method for method in STANDARD.values() if category in (None, method.category)]
    print_result([_data(method) for method in found], _list_lines(found), as_json=as_json)


@methods.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the parameters, results, errors and scopes of the method NAME."""
    method = STANDARD.get(name.upper())
    if method is None:
        raise click.BadParameter(f"{name!r} is not a valid standard method; use one of {', '.join(STANDARD)}.")
    print_result(_data(method), _show_lines(method), as_json=as_json)


def _data(method: StandardMethod) -> dict[str, Any]:
    return {
        **members(method, "name", "category", "description", "intent", "outcome", "impact", "idempotent"),
        "scopes": list(method.scopes),
        "parameters": dict(method.parameters),
        "required": list(method.required),
        "result": object_of(method.returns or {})["properties"],
        "errors": [members(one, "name", "status", "description") for one in method.errors],
    }


def _list_lines(found: list[StandardMethod]) -> Iterator[Text]:
    width = max((len(method.name) for method in found), default=0)
    for one in found:
        yield line((f"{one.name:{width}}", "bold"), f"  {one.category:11}  {one.impact:13}  {one.description}")


def _show_lines(method: StandardMethod) -> Iterator[Text]:
    yield line((method.name, "bold"), f"  {method.category}, {method.impact}")
    yield line(method.description)
    yield line(f"Outcome: {method.outcome}")
    if method.scopes:
        yield line(f"Scopes: {', '.join(method.scopes)}")
    yield line("")
    yield line(("Parameters", "bold"))
    for name, schema in method.parameters.items():
        must = "required" if name in method.required else "optional"
        yield line(f"  {name:20} {must:9} {_kind(schema)}")
        yield from _member_lines(schema, "    ")
    yield line(("Result", "bold"))
    for name, schema in (method.returns or {}).items():
        always = "sometimes" if name.endswith("?") else "always"
        yield line(f"  {name.removesuffix('?'):20} {always:9} {_kind(schema)}")
        yield from _member_lines(schema, "    ")
    yield line(("Errors", "bold"))
    yield from (line(f"  {error.name:20} {error.status}       {error.description}") for error in method.errors)


def _member_lines(schema: Any, indent: str) -> Iterator[Text]:
    while schema.get("type") == "array":
        schema = schema.get("items", {})
    for name, member in schema.get("properties", {}).items():
        must = "required" if name in schema.get("required", ()) else "optional"
        yield line(f"{indent}{name:{max(22 - len(indent), 1)}} {must:9} {_kind(member)}")
        yield from _member_lines(member, indent + "  ")


def _kind(schema: Any) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


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
