"""`bespeak catalog`: look up verbs and compare catalogs."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text

from bespeak.app.cli.catalog_diff import catalog_diff
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.contract.catalog.document import open_catalog, versions_with
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.terminal.console import json_option, line, print_findings, print_result

_version_option = click.option(
    "--version",
    "reference",
    default=DEFAULT_CATALOG,
    show_default=True,
    help="Bundled version, or path of a catalog document.",
)


@click.group()
def catalog() -> None:
    """Look up verbs and compare catalog versions."""


catalog.add_command(catalog_diff, "diff")


@catalog.command("list")
@click.option("--category", help="Only verbs of this category.")
@_version_option
@json_option
def list_verbs(category: str | None, reference: str, as_json: bool) -> None:
    """List the approved verbs in alphabetical order."""
    chosen = _open(reference)
    if category is not None and category not in chosen.categories:
        known = ", ".join(chosen.categories)
        raise click.BadParameter(f"{category!r} is not a valid category; use one of {known}.", param_hint="--category")
    verbs = chosen.verbs.values() if category is None else chosen.verbs_in(category)
    ordered = sorted(verbs, key=lambda verb: verb.name)
    data = {"version": chosen.version, "verbs": [verb.to_json() for verb in ordered]}
    print_result(data, _list_lines(ordered), as_json=as_json)


@catalog.command()
@click.argument("verb")
@_version_option
@json_option
def show(verb: str, reference: str, as_json: bool) -> None:
    """Show the catalog entry of VERB."""
    chosen = _open(reference)
    found = chosen.verbs.get(verb.upper())
    if found is None:
        click.echo(_unknown(verb, chosen), err=True)
        click.get_current_context().exit(1)
    embedded = found.name in chosen.embedded
    data = {"version": chosen.version, **found.to_json(), "embedded": embedded}
    print_result(data, _show_lines(found, chosen.version, embedded=embedded), as_json=as_json)


def _open(reference: str) -> Catalog:
    chosen, findings = open_catalog(reference)
    print_findings(findings)
    if chosen is None:
        click.get_current_context().exit(2)
    return chosen


def _list_lines(verbs: list[Verb]) -> Iterator[Text]:
    name_width = max((len(verb.name) for verb in verbs), default=0)
    kinds = {verb.name: ", ".join(verb.categories) for verb in verbs}
    kind_width = max((len(kind) for kind in kinds.values()), default=0)
    for verb in verbs:
        mark = f" ({verb.warning})" if verb.warning else ""
        yield line(
            (f"{verb.name:{name_width}}", "cyan" if not mark else "dim cyan"),
            f"  {kinds[verb.name]:{kind_width}}  {verb.description}",
            (mark, "yellow"),
        )


def _show_lines(verb: Verb, version: str, *, embedded: bool) -> Iterator[Text]:
    yield line((verb.name, "bold cyan"), f"  {verb.description}")
    yield line("categories     ", ", ".join(verb.categories))
    yield line("catalog        ", version)
    if embedded:
        yield line("floor method   ", "supported by every server")
    facts = (
        ("deprecated in  ", verb.deprecated_in),
        ("removed in     ", verb.removed_in),
        ("successor      ", verb.successor),
    )
    yield from (line((label, "yellow"), value) for label, value in facts if value is not None)


def _unknown(text: str, chosen: Catalog) -> str:
    name = text.upper()
    if name in chosen.legacy:
        preferred = chosen.legacy[name].preferred
        return f"{name} is an HTTP verb, which servers accept only if they opt in. Use {preferred}."
    message = f"{text[:40]!r} is not in catalog {chosen.version}."
    elsewhere = versions_with(name)
    if elsewhere:
        return f"{message} It is in {', '.join(elsewhere)}."
    near = chosen.near(text)
    return f"{message} Did you mean {' or '.join(near)}?" if near else f"{message} See `bespeak catalog list`."
