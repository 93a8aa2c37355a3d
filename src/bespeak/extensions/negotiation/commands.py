"""`bespeak proposals`: approve, reject, publish, revoke and promote the endpoints that agents propose.

Promotion writes the recipe and the endpoint of a synthesis as files of a deployment (AGTP-API 12.1).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.contract.handler import Composition
from bespeak.contract.limits import read_duration, write_duration
from bespeak.documents.deployment.endpoint_toml import read_recipes
from bespeak.documents.deployment.folder import ENDPOINTS, RECIPES
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.documents.projections.deployment_files import endpoint_data, function_names
from bespeak.documents.toml_text import find_null, toml_text
from bespeak.errors import ConfigError
from bespeak.extensions.negotiation import store as kept
from bespeak.extensions.negotiation.proposal import texts_of
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.store import ProposalRow
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.additions import StoredEndpoint, read_endpoint
from bespeak.state.store.store import Conflict
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import json_option, limit_option, line, print_json, print_lines, print_list, state_option
from bespeak.terminal.decisions import carry_out, check_decision, decision_options
from bespeak.terminal.deployment import server_document
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import has_errors


def promote_synthesis(stored: StoredEndpoint, folder: Path) -> list[Path]:
    """Write the endpoint into a new file and append its recipe; return both paths. Raises ConfigError."""
    assert stored.recipe is not None, "every synthesis has its recipe"
    name = function_names([stored.endpoint])[0].replace("_", "-")[:100]  # it is that of a file
    endpoint = replace(stored.endpoint, handler=Composition(recipe=name))
    data = {"endpoint": {**endpoint_data(endpoint, ""), "handler": {"type": Composition.type, "recipe": name}}}
    recipe = {"recipe": [replace(stored.recipe, name=name, description=" ".join(stored.explanation)).to_json()]}
    for part in (data, recipe):
        null = find_null(part)
        if null is not None:
            raise ConfigError(f"{endpoint} cannot be written as TOML, which has no null: {null}")
    path, recipes = folder / ENDPOINTS / f"{name}.toml", folder / RECIPES
    text = _append(recipes, name, recipe)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:  # never through a link, never over another's file
            file.write(toml_text(data))
        recipes.write_text(text, "utf-8")
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} exists; move it away, or promote into another folder") from error
    except OSError as error:
        raise ConfigError(f"could not write {error.filename}: {error.strerror}") from error
    return [recipes, path]


def _append(path: Path, name: str, recipe: dict[str, Any]) -> str:
    text = toml_text(recipe, sections=("recipe", "steps"))
    if not path.exists():
        return text
    known, findings = read_recipes(path)
    if has_errors(findings):
        raise ConfigError(f"{path} has errors, so nothing is appended: {findings[0]}")
    if any(one.name == name for one in known):
        raise ConfigError(f"{path} has a recipe {name!r} already; rename it first")
    return f"{path.read_text('utf-8').rstrip()}\n\n{text}"


_STYLES: Final = {kept.PENDING: "bold yellow", kept.APPROVED: "green", kept.REJECTED: "red"}
_MOMENTS: Final = ("created", "expires", "decided_at")


@click.group()
def proposals() -> None:
    """List, approve, reject, publish, revoke and promote the endpoints that agents propose.

    PROPOSAL is the id of a proposal or of its synthesis. TARGET is the deployment, whose configuration names the store;
    --store overrides it.
    """


@proposals.command("list")
@store_options
@state_option(kept.STATES, kept.PENDING, "Only proposals in this state.")
@limit_option("proposals")
@json_option
def list_(target: str, override: str | None, state: str, limit: int, as_json: bool) -> None:
    """List proposals, oldest first."""
    command = kept.ListProposals(None if state == "all" else state, limit)
    found: list[ProposalRow] = visit_store(target, override, lambda store: store.read(command))
    nothing = "no proposals" if state == "all" else f"no {state} proposals"
    print_list(found, _as_dict, _summary, nothing, as_json=as_json)


@proposals.command()
@click.argument("proposal")
@store_options
@json_option
def show(proposal: str, target: str, override: str | None, as_json: bool) -> None:
    """Show a proposal: its contract, its plan and its state."""
    row = _read(proposal, target, override)
    if as_json:
        print_json(_as_dict(row))
        return
    print_lines(_details(row))
    stored = _stored(row)
    if stored is not None:
        print_lines(line(f"  {step}") for step in stored.explanation)
        print_json(project_endpoint(stored.endpoint))


@proposals.command(short_help="Approve a pending proposal.")
@click.argument("proposal")
@store_options
@decision_options
def approve(proposal: str, target: str, override: str | None, reason: str | None, by: str | None) -> None:
    """Approve a pending proposal: its agent can call the endpoint at once.

    \b
    Example:
    bespeak proposals approve prop-2f6c... examples/hotel --by ann
    """
    _decide(kept.APPROVED, proposal, target, override, reason=reason, by=by)


@proposals.command(short_help="Reject a pending proposal.")
@click.argument("proposal")
@store_options
@decision_options
def reject(proposal: str, target: str, override: str | None, reason: str | None, by: str | None) -> None:
    """Reject a pending proposal; the agent is told the reason."""
    _decide(kept.REJECTED, proposal, target, override, reason=reason, by=by)


@proposals.command(short_help="Serve a synthesis to every agent.")
@click.argument("proposal")
@store_options
@click.option("--for", "duration", metavar="DURATION", help="How long, such as 7d.  [default: default_duration]")
@click.option("--by", metavar="NAME", help="Name of the decider.  [default: your login name]")
@click.option("--approve-texts", is_flag=True, help="Approve the texts without being asked.")
def publish(
    *, proposal: str, target: str, override: str | None, duration: str | None, by: str | None, approve_texts: bool
) -> None:
    """Let every agent call a synthesis, on every face, for a time. `promote` makes it permanent.

    An agent wrote its texts, and the models of all others will read them. They are printed, and you approve them.
    """
    settings = server_document(target).extension_table("negotiation", NegotiationSettings) or NegotiationSettings()
    seconds = settings.default_duration if duration is None else read_duration(duration)
    if seconds is None:
        raise click.UsageError(f"--for must be a duration such as 24h or 7d; got {duration!r}")
    name, stored = check_decision(proposal, None, by), _stored(_read(proposal, target, override))
    if stored is not None:
        print_lines(line((f"  {place}  ", "dim"), text) for place, text in texts_of(stored.endpoint))
        if not approve_texts and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise CommandFailedError("an agent wrote these texts; read them, and approve them with --approve-texts")
        if not approve_texts and not click.confirm("Publish these texts to every agent?"):
            raise CommandFailedError("it is not published")
    command = kept.PublishProposal(_id(proposal), float(seconds), f"operator:{name}")
    row = _change("PUBLISH", proposal, target, override, command)
    click.echo(f"{row.method} {row.path} is published until {write_instant(row.expires)}")


@proposals.command(short_help="End an approved or published synthesis.")
@click.argument("proposal")
@store_options
@decision_options
def revoke(proposal: str, target: str, override: str | None, reason: str | None, by: str | None) -> None:
    """End an approved or published synthesis at once, in every process and on every face.

    If its agent proposes the same method and path within 30 days, an operator has to approve it again.

    \b
    Example:
    bespeak proposals revoke syn-2f6c... examples/hotel --reason "returns the wrong guest"
    """
    name = check_decision(proposal, reason, by)
    command = kept.RevokeSynthesis(_id(proposal), f"operator:{name}", reason)
    row = _change("REVOKE", proposal, target, override, command)
    click.echo(f"{row.synthesis_id} is revoked by {row.decided_by}: {row.method} {row.path}")


@proposals.command(short_help="Write a synthesis as files of a deployment.")
@click.argument("proposal")
@store_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder of a deployment."
)
def promote(proposal: str, target: str, override: str | None, output: Path) -> None:
    """Write the recipe and the endpoint of a synthesis into the folder of a deployment (AGTP-API 12.1).

    The endpoint is served when the server starts again. Files of others are not changed, except that the recipe is
    appended to agtp-recipes.toml.

    \b
    Example:
    bespeak proposals promote syn-2f6c... . -o .
    """
    row = _read(proposal, target, override)
    stored = _stored(row)
    if stored is None or row.state == kept.REJECTED:
        raise CommandFailedError(f"{proposal} is {row.state}; only an approved proposal can be promoted")
    for path in promote_synthesis(stored, output):
        click.echo(f"wrote {path}")


def _decide(
    state: str, proposal: str, target: str, override: str | None, *, reason: str | None, by: str | None
) -> None:
    name = check_decision(proposal, reason, by)
    command = kept.DecideProposal(_id(proposal), state, f"operator:{name}", reason)
    row = _change("APPROVE" if state == kept.APPROVED else "REJECT", proposal, target, override, command)
    click.echo(f"{row.proposal_id} is {state} by {row.decided_by}: {row.method} {row.path}")


_Decision = kept.DecideProposal | kept.PublishProposal | kept.RevokeSynthesis


def _change(verb: str, proposal: str, target: str, override: str | None, command: _Decision) -> ProposalRow:
    """Carry out a decision, with its verb in the audit trail."""
    details = {"proposal_id": command.proposal_id, "decided_by": command.decided_by}
    details["reason"] = None if isinstance(command, kept.PublishProposal) else command.reason
    outcome = carry_out(target, override, command, verb=verb, path="/proposals/{proposal_id}", details=details)
    if isinstance(outcome, Conflict):
        state, by = outcome.details.get("state"), outcome.details.get("decided_by") or "the server"
        raise CommandFailedError(kept.REFUSALS[outcome.reason].format(proposal, state=state, by=by))
    row: ProposalRow = outcome[0]
    return row


def _read(proposal: str, target: str, override: str | None) -> ProposalRow:
    row: ProposalRow | None = visit_store(target, override, lambda store: store.read(kept.ReadProposal(_id(proposal))))
    if row is None:
        raise CommandFailedError(kept.REFUSALS["not-found"].format(proposal))
    return row


def _id(proposal: str) -> str:
    return kept.proposal_id_of(proposal) if proposal.startswith("syn-") else proposal


def _stored(row: ProposalRow) -> StoredEndpoint | None:
    return read_endpoint(row.document, row.proposal_id)[0] if '"recipe"' in row.document else None


def _as_dict(row: ProposalRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in ("proposal_id", "synthesis_id", *row.__struct_fields__)}
    values |= {name: write_instant(values[name]) for name in _MOMENTS if values[name] is not None}
    return {**values, "document": msgspec.json.decode(row.document)}


def _summary(row: ProposalRow) -> Text:
    kind = " persistent" if row.persistent else ""
    return line(
        (f"{row.state:<9}", _STYLES.get(row.state, "dim")),
        f" {row.proposal_id}  {write_instant(row.created)}  {row.method} {row.path[:120]}{kind}",
        (f"  by {row.agent_id[:12]}", "dim"),
    )


def _details(row: ProposalRow) -> Iterator[Text]:
    yield line((row.proposal_id, "bold"), f"  {row.method} {row.path}")
    refusal = msgspec.json.decode(row.document).get("refusal", {})
    named = {
        "state": row.state,
        "agent": row.agent_id,
        "session": row.session_id or None,
        "persistent": write_duration(row.granted) if row.persistent else None,
        "published": "yes" if row.published else None,
        "created": write_instant(row.created),
        "expires": write_instant(row.expires),
        "decided by": row.decided_by,
        "reason": row.reason or refusal.get("explanation"),
    }
    for name, value in named.items():
        if value is not None:
            yield line(f"  {name:<12} {value}")
