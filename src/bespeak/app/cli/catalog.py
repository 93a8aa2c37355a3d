"""`bespeak catalog`: look up verbs; `agtp-catalog-diff`: what a catalog upgrade changes and breaks (AGTP-API 4.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import click
from rich.text import Text

from bespeak.checks.evolution.catalog_diff import (
    CatalogConflict,
    CatalogDiff,
    VerbChange,
    diff_catalogs,
    scan_deployment,
)
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.contract.catalog.document import open_catalog, versions_with
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.documents.rules import PYTHON_NOT_READ
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED, EXIT_UNUSABLE, FOLDER
from bespeak.terminal.console import json_option, line, print_findings, print_json, print_lines, print_result
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location

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


@catalog.command()
@click.argument("word")
@_version_option
@json_option
def search(word: str, reference: str, as_json: bool) -> None:
    """Find verbs by the meaning of WORD: a verb, a noun or a sentence in quotes.

    \b
    Examples:
    bespeak catalog search erase
    bespeak catalog search "calls a meeting off"
    """
    chosen = _open(reference)
    found = chosen.search(word)
    print_result(
        {"version": chosen.version, "verbs": [verb.to_json() for verb in found]}, _list_lines(found), as_json=as_json
    )
    if not found:
        click.echo(f"No verb of catalog {chosen.version} means {word[:40]!r}. See `bespeak catalog list`.", err=True)
        click.get_current_context().exit(EXIT_REFUSED)


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
    near = chosen.suggest(text)
    return f"{message} Did you mean {' or '.join(near)}?" if near else f"{message} Try `bespeak catalog search`."


_HEADINGS: Final = {
    "path": "Paths that contain a new verb",
    "endpoint": "Endpoints that name a removed verb",
    "recipe": "Recipes that call a removed verb",
    "policy": "Policy entries that name a removed verb",
    "deprecation": "Newly deprecated verbs in use",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("old")
@click.argument("new")
@click.option(
    "--against-deployment", "deployment", type=FOLDER, help="Also report what would break in this deployment folder."
)
@json_option
def catalog_diff(old: str, new: str, deployment: Path | None, as_json: bool) -> None:
    """Compare two catalogs. OLD and NEW are catalog documents or bundled versions.

    \b
    Examples:
    agtp-catalog-diff 1.0.0 1.1.0
    agtp-catalog-diff old.json new.json --against-deployment deploy/

    Exit codes: 0 nothing breaks, 1 the deployment breaks, 2 a document cannot be read.
    """
    before, findings = open_catalog(old)
    after, more = open_catalog(new)
    findings = [*findings, *more]
    diff = diff_catalogs(before, after) if before is not None and after is not None else None
    conflicts: list[CatalogConflict] | None = None
    if diff is not None and deployment is not None:
        conflicts, found = _scan(deployment, diff)
        findings += found
    breaking = any(conflict.breaking for conflict in conflicts or ())
    if as_json:
        listed = None if conflicts is None else [conflict.to_json() for conflict in conflicts]
        written = None if diff is None else diff.to_json()
        print_json({"diff": written, "conflicts": listed, "breaking": breaking, "findings": findings})
    else:
        print_findings(findings)
        if diff is not None:
            print_lines([*_diff_lines(diff), *_conflict_lines(conflicts, str(deployment))])
    code = EXIT_UNUSABLE if has_errors(findings) else EXIT_REFUSED if breaking else EXIT_GOOD
    click.get_current_context().exit(code)


catalog.add_command(catalog_diff, "diff")


def main() -> None:
    catalog_diff(prog_name="agtp-catalog-diff")


def _scan(deployment: Path, diff: CatalogDiff) -> tuple[list[CatalogConflict], list[Diagnostic]]:
    from bespeak.documents.deployment.deployment import read_deployment  # noqa: PLC0415
    from bespeak.documents.deployment.server_toml import with_custom  # noqa: PLC0415 - a plain diff needs no readers

    deployed, findings = read_deployment(deployment)
    if deployed.server.main.app is not None:
        # Importing an operator's code may have side effects; the tool of the draft scans documents only.
        message = f"the endpoints of {deployed.server.main.app} are written in Python and were not scanned"
        findings = [*findings, PYTHON_NOT_READ.found(message, Location(str(deployed.root)), severity="warning")]
    endpoints, policies = deployed.endpoints, deployed.policies
    if deployed.server.document is not None:
        from bespeak.checks.lint.document import read_subject  # noqa: PLC0415

        text = read_text(deployed.server.document, MAX_BYTES)
        subject = text if isinstance(text, Diagnostic) else read_subject(text, str(deployed.server.document), "agis")
        described: tuple[Endpoint, ...] = ()
        if isinstance(subject, Diagnostic):
            findings = [*findings, subject]
        else:
            described = tuple(entry.endpoint for entry in subject.endpoints)
        endpoints = (*described, *endpoints)
        # Verbs of a document that the catalog dropped become custom methods (AGIS 1.3).
        policies = with_custom(policies, (endpoint.method for endpoint in described))
    return scan_deployment(endpoints, deployed.recipes, policies, diff), findings


def _diff_lines(diff: CatalogDiff) -> Iterator[Text]:
    yield line((f"Catalog {diff.old_version} -> {diff.new_version}", "bold"))
    yield from _section("Removed", "bold red", [(verb.name, _farewell(verb)) for verb in diff.removed])
    added = [(verb.name, f"{verb.description} [{', '.join(verb.categories)}]") for verb in diff.added]
    yield from _section("Added", "bold green", added)
    yield from _section("Newly deprecated", "bold yellow", [(verb.name, _fate(verb)) for verb in diff.newly_deprecated])
    yield from _section("Deprecation changed", "bold", _changes(diff.deprecation_changed, _fate))
    yield from _section("Recategorised", "bold", _changes(diff.recategorised, lambda verb: ", ".join(verb.categories)))
    yield from _section("Redescribed", "bold", _changes(diff.redescribed, lambda verb: verb.description))
    yield from _section("Floor methods added", "bold", [(name, "") for name in diff.embedded_added])
    yield from _section("Floor methods removed", "bold red", [(name, "") for name in diff.embedded_removed])
    yield from _section("Legacy verbs changed", "bold", [(name, "") for name in diff.legacy_changed])
    yield from _section("Categories changed", "bold", [(name, "") for name in diff.categories_changed])
    yield Text()
    yield _version_line(diff)


def _section(heading: str, style: str, rows: list[tuple[str, str]]) -> Iterator[Text]:
    if not rows:
        return
    yield Text()
    yield line((f"{heading} ({len(rows)})", style))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        yield line("  ", (f"{name:{width}}", "cyan"), f"  {text}") if text else line("  ", (name, "cyan"))


def _changes(changes: Iterable[VerbChange], aspect: Callable[[Verb], str]) -> list[tuple[str, str]]:
    return [(change.name, f"{aspect(change.before)} -> {aspect(change.after)}") for change in changes]


def _farewell(verb: Verb) -> str:
    warned = f"deprecated since {verb.deprecated_in}" if verb.deprecated_in else "not deprecated before"
    return f"{warned}; use {verb.successor}" if verb.successor else warned


def _fate(verb: Verb) -> str:
    if verb.deprecated_in is None:
        return "not deprecated"
    end = f"removed in {verb.removed_in}" if verb.removed_in else "no removal planned"
    successor = f"use {verb.successor}" if verb.successor else "no successor"
    return f"deprecated in {verb.deprecated_in}, {end}, {successor}"


def _version_line(diff: CatalogDiff) -> Text:
    if diff.needed_bump == "none":
        return line("Nothing changed.") if diff.version_step == "none" else line("Only the version changed.")
    step = {"none": "no bump", "backwards": "a downgrade"}.get(diff.version_step, f"a {diff.version_step} bump")
    message = f"These changes need a {diff.needed_bump} bump; {diff.old_version} -> {diff.new_version} is {step}"
    return line(f"{message}.") if diff.honours_semver else line((f"{message}: too small.", "yellow"))


def _conflict_lines(conflicts: list[CatalogConflict] | None, deployment: str) -> Iterator[Text]:
    if conflicts is None:
        return
    for kind, heading in _HEADINGS.items():
        group = [conflict for conflict in conflicts if conflict.kind == kind]
        if group:
            yield Text()
            yield line((f"{heading} ({len(group)})", "bold red" if any(c.breaking for c in group) else "bold yellow"))
            for conflict in group:
                yield line("  ", "error: " if conflict.breaking else "warning: ", str(conflict))
    breaking = sum(conflict.breaking for conflict in conflicts)
    yield Text()
    if breaking:
        yield line((f"{breaking} breaking, {len(conflicts) - breaking} advisory in {deployment}.", "bold red"))
    else:
        advice = f" {len(conflicts)} advisory." if conflicts else ""
        yield line((f"Nothing breaks in {deployment}.{advice}", "bold green"))
