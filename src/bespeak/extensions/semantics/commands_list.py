"""`bespeak semantic list` and `show`: look into the registry of a store."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from bespeak.extensions.semantics.store import (
    Artifact,
    ArtifactKind,
    ArtifactRow,
    ListArtifacts,
    ListConfirmed,
    ReadArtifact,
)
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.store import Store
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import json_option, print_json
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable

_KINDS: Final[tuple[ArtifactKind, ...]] = ("ontology", "alignment", "context")


@click.command("list")
@store_options
@click.option("--kind", type=click.Choice(_KINDS), help="Only artifacts of this kind.")
@json_option
def list_(target: str, override: str | None, kind: ArtifactKind | None, as_json: bool) -> None:
    """List registered ontologies, alignments and contexts, oldest first, and who has confirmed an alignment."""

    async def read(store: Store) -> tuple[list[ArtifactRow], dict[str, str]]:
        return await store.read(ListArtifacts(kind)), await store.read(ListConfirmed())

    rows, confirmed = visit_store(target, override, read)
    if as_json:
        print_json([{**as_dict(row), "confirmed_by": confirmed.get(row.digest, "")} for row in rows])
        return
    for row in rows:
        by = f"  confirmed by {confirmed[row.digest]}" if row.digest in confirmed else ""
        about = f"{row.kind:<10} {row.id} {row.version}  {row.digest[:12]}  {row.signer or 'unsigned'}{by}"
        click.echo(printable(about))


@click.command()
@click.argument("artifact")
@store_options
@click.option("--version", help="Version.  [default: the latest]")
@click.option("--kind", type=click.Choice(_KINDS), default="ontology", show_default=True, help="Kind of the artifact.")
@click.option("--content", is_flag=True, help="Print the content: canonical N-Quads of an ontology.")
@json_option
def show(  # noqa: PLR0917 - click passes them all by name
    artifact: str,
    target: str,
    override: str | None,
    version: str | None,
    kind: ArtifactKind,
    content: bool,
    as_json: bool,
) -> None:
    """Show a registered ontology by its IRI: version, digest, source, signer and time."""
    command = ReadArtifact(kind, artifact, version)
    found: Artifact | None = visit_store(target, override, lambda store: store.read(command))
    if found is None:
        raise CommandFailedError(f"{artifact} {version or ''}".strip() + " is not registered")
    if content:
        click.echo(found.content.decode(errors="replace"), nl=False)
    elif as_json:
        print_json(as_dict(found.row))
    else:
        for name, value in as_dict(found.row).items():
            shown = ", ".join(f"{one['id']} {one['version']}" for one in value) if name == "refs" else value
            click.echo(printable(f"{name:<12} {shown if shown != '' else '-'}"))


def as_dict(row: ArtifactRow) -> dict[str, Any]:
    """Return an artifact for JSON, with its time in RFC 3339 form."""
    found: dict[str, Any] = msgspec.to_builtins(row)
    return {**found, "registered": write_instant(row.registered)}
