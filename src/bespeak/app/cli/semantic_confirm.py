"""`bespeak semantic confirm`: the operator confirms what an alignment maps, or revokes that."""

from __future__ import annotations

import secrets

import click

from bespeak.app.cli.console import print_json
from bespeak.app.cli.deciding import check_decision, decision_options, visit_store
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.semantic_register import read_settings_trust
from bespeak.app.cli.target_store import store_options
from bespeak.contract.ontology.alignment import Alignment
from bespeak.documents.alignment.draft_json import read_json
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.fault import Fault
from bespeak.runtime.semantic.knowledge import read_artifact, verify_alignment
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.alignment_confirmations import ConfirmAlignment, RevokeConfirmation
from bespeak.state.store.commands.cases import Case
from bespeak.state.store.commands.ontologies import Artifact, ReadArtifact
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.printable import printable

_MOST_SHOWN = 50


@click.command(short_help="Confirm an alignment, or revoke that.")
@click.argument("alignment")
@store_options
@click.option("--version", help="Version.  [default: the latest]")
@click.option("--revoke", is_flag=True, help="Revoke the confirmation.")
@decision_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def confirm(
    *,
    alignment: str,
    target: str,
    override: str | None,
    version: str | None,
    revoke: bool,
    reason: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Confirm a registered alignment by its IRI, so that calls that cannot be undone may use it.

    Look at what it maps first: `bespeak semantic show --kind alignment --content`. All of its mappings are confirmed,
    whatever their confidence. The confirmation is for exactly this content: a new version needs its own. It is recorded
    as a case, and `bespeak semantic list` shows it.

    \b
    Examples:
    bespeak semantic confirm https://ex.org/align/X-Y-2026 examples/semantic --reason "reviewed with the board"
    bespeak semantic confirm https://ex.org/align/X-Y-2026 examples/semantic --revoke
    """
    decider, attestation = f"operator:{check_decision(alignment, reason, by)}", f"att-{secrets.token_hex(16)}"
    found: Artifact | None = visit_store(
        target, override, lambda store: store.read(ReadArtifact("alignment", alignment, version))
    )
    if found is None:
        raise CommandFailedError(f"{alignment} {version or ''}".strip() + " is not a registered alignment")
    command: Command
    if revoke:
        command = RevokeConfirmation(alignment, found.row.version, decider, attestation, reason)
    else:
        _check_usable(found, target)
        case_id = f"align-{secrets.token_hex(16)}"
        command = ConfirmAlignment(alignment, found.row.version, case_id, decider, attestation, reason)
    done = visit_store(target, override, lambda store: _do(store, command))
    if isinstance(done, Conflict):
        raise CommandFailedError(f"{alignment} {found.row.version} is not confirmed")
    if as_json:
        print_json(
            {
                "case_id": done.case_id,
                "alignment": found.row.id,
                "version": found.row.version,
                "sha256": found.row.digest,
                "state": "revoked" if revoke else "confirmed",
                "by": done.decided_by,
                "at": write_instant(done.decided_at or 0.0),
            }
        )
        return
    click.echo(printable(f"{'revoked' if revoke else 'confirmed'}    {found.row.id} {found.row.version}"))
    click.echo(f"sha256       {found.row.digest}")
    click.echo(printable(f"by           {done.decided_by}"))
    click.echo(f"case         {done.case_id}")
    if not revoke:
        _print_mappings(found)


def _check_usable(found: Artifact, target: str) -> None:
    """End the command for content that no server would use: it was changed, or lacks the signature of a trusted key."""
    trust = read_settings_trust(target)
    read = read_artifact(found)
    if trust.signed and isinstance(read, Alignment):
        read = verify_alignment(read, found.row, trust)
    if isinstance(read, Fault):
        raise CommandFailedError(f"{found.row.id} {found.row.version} cannot be confirmed: {read.message}")


async def _do(store: Store, command: Command) -> Case | Conflict:
    done = await store.do(command)
    return done if isinstance(done, Conflict) else done[0]


def _print_mappings(found: Artifact) -> None:
    alignment = read_json(found.content, found.row.id).alignment
    rules = () if alignment is None else alignment.rules
    for rule in rules[:_MOST_SHOWN]:
        confidence = 0.0 if alignment is None else alignment.confidence_of(rule)
        click.echo(printable(f"  {rule.source} {rule.relation} {rule.target} ({confidence:.2f})"))
    if len(rules) > _MOST_SHOWN:
        click.echo(f"  and {len(rules) - _MOST_SHOWN} more")
