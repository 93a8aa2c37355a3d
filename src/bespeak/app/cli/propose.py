"""`bespeak propose`: ask for an endpoint that a service does not have."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bespeak.agent.client.errors import (
    ContractMismatchError,
    ProposalEscalatedError,
    ProposalPendingError,
    ProposalRejectedError,
    ServiceError,
)
from bespeak.agent.client.negotiation import Proposal, Synthesis, define, read_proposal
from bespeak.agent.client.service import ServiceClient
from bespeak.app.cli.call import print_refusal, property_types, read_field
from bespeak.app.cli.service import check_text, open_service, service_options
from bespeak.contract.endpoint import IMPACTS
from bespeak.contract.schema.view import SchemaView
from bespeak.documents.ai.param_notation import write_fields
from bespeak.terminal import FILE, repeatable_option, seconds_option
from bespeak.terminal.console import console, line, print_json
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import json_table

_WIDEST = 300
_SIMILAR = 3
_MISSES = 5
_TERMS = (  # options of `ServiceClient.propose`
    *("confidence", "persistent", "duration", "session_id", "negotiation_id", "wait"),
    *("follow_effects", "follow_ambiguous", "escalate"),
)


@click.command()
@click.argument("service")
@click.argument("wanted", nargs=-1, metavar="'METHOD /PATH'")
@repeatable_option("--given", metavar="FIELD", text="Input that you have")
@repeatable_option("--needs", metavar="FIELD", text="Output that you need")
@click.option("-f", "--file", type=FILE, help="Endpoint definition (JSON) to propose, in place of --given and --needs.")
@click.option("--intent", metavar="TEXT", help="What the endpoint should accomplish, in one sentence.")
@click.option("--impact", type=click.Choice(IMPACTS), help="Worst effect that you allow.  [default: that of the verb]")
@click.option("--confidence", type=click.FloatRange(0, 1), default=0.0, help="Least confidence that you accept.")
@click.option("--persistent", is_flag=True, help="Ask for an endpoint that outlives the session.")
@click.option("--duration", metavar="TIME", help="How long a persistent endpoint should live, such as 24h or 7d.")
@click.option("--session-id", metavar="ID", help="Session that the endpoint belongs to.")
@click.option("--negotiation-id", metavar="ID", help="Negotiation to continue, for example after a 262.")
@seconds_option("--wait", 30.0, "How long to wait for a decision.", more_than_zero=False)
@click.option("--follow-effects", is_flag=True, help="Follow counter-proposals that change something, too.")
@click.option("--follow-ambiguous", is_flag=True, help="Follow counter-proposals although the service has doubts.")
@click.option("--escalate", is_flag=True, help="Escalate to people if the service demands it.")
@click.option("--explain", is_flag=True, help="Print how the service composes the endpoint, step by step.")
@click.option("--dry-run", is_flag=True, help="Print the definition and send nothing.")
@repeatable_option(
    *("--call", "fields"),
    metavar="[KEY=VALUE]",
    text="Call the endpoint at once, with this input",
    is_flag=False,
    flag_value="",
)
@service_options
def propose(
    *,
    service: str,
    wanted: tuple[str, ...],
    given: tuple[str, ...],
    needs: tuple[str, ...],
    file: Path | None,
    intent: str | None,
    impact: str | None,
    dry_run: bool,
    explain: bool,
    fields: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Ask SERVICE for an endpoint that it does not have, composed of those that it has.

    A FIELD is a name with dots for nesting and [] for lists, `?` if it is optional, and a type: email,
    limit?:integer, invoices[].total:number. The approved contract is compared with what you asked before it is
    called. If the service doubts what you mean, its counter-proposal is followed only if you say so. The exit code is 0
    if the endpoint was approved, and called if you asked for that, and else 1.

    Examples:

    \b
    bespeak propose agtp://127.0.0.1 "FIND /rooms/cheap" --given max_price:number --needs 'rooms[].room_id' --explain
    bespeak propose agtp://127.0.0.1 "FIND /rooms/cheap" --given max_price --needs 'rooms[]' --call max_price=120
    bespeak propose agtp://127.0.0.1 -f endpoint.json --persistent --duration 7d --agent-id ID
    """
    terms: dict[str, Any] = {name: options.pop(name) for name in _TERMS}
    terms["follow_ambiguous"] = terms["follow_ambiguous"] or (not as_json and _confirm_plan)
    texts = (intent, terms["duration"], terms["session_id"], terms["negotiation_id"])
    check_text(*wanted, *given, *needs, *fields, *(text or "" for text in texts))
    place = [word for text in wanted if "=" not in text for word in text.split()]
    inputs = tuple(text for text in (*fields, *wanted) if "=" in text)
    written = _read_file(file) if file is not None else {}
    method, path = _place(place, written)
    if file is not None and (given or needs):
        raise click.UsageError("Give either -f or --given and --needs.")

    async def run() -> int:
        async with open_service(service, **options) as client:
            if file is not None:
                proposal = read_proposal({**written, "method": method, "path": path})
            else:
                known = await client.known_endpoints()
                proposal = define(
                    method, path, given=_listed(given), needs=_listed(needs), intent=intent, impact=impact, known=known
                )
            if dry_run:
                print_json(proposal.definition)
                return 0
            synthesis = await _negotiate(client, proposal, terms, as_json=as_json)
            if synthesis is None:
                return 1
            called = bool(fields or inputs)
            if not as_json:
                lines = _summary(synthesis, explain=explain)
                _print_lines([*lines, *_advice(synthesis, service, options)], aside=called)
            elif not called:
                print_json({"status": 263, **synthesis.to_json()})
            return await _call(synthesis, inputs, as_json=as_json) if called else 0

    return asyncio.run(run())


def _confirm_plan(error: ProposalRejectedError) -> bool:
    """Let a person at a terminal decide about a counter-proposal of a service that doubts what is meant."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    _print_lines([line(error.message), *(line(f"counter-proposal: {step}") for step in error.counter_plan)])
    return click.confirm("Is this what you mean?", err=True)


def _listed(fields: tuple[str, ...]) -> list[str]:
    return [field for text in fields for field in text.replace(",", " ").split()]


def _place(words: list[str], written: Mapping[str, Any]) -> tuple[str, str]:
    method, path = words if len(words) == 2 else (written.get("method"), written.get("path"))
    if len(words) not in (0, 2) or not isinstance(method, str) or not isinstance(path, str):
        raise click.UsageError("Give the endpoint as 'METHOD /path', like 'FIND /rooms/cheap'.")
    return method.upper(), path


def _read_file(path: Path) -> Mapping[str, Any]:
    root = json_table(path.read_bytes(), str(path), tolerant=True)
    if isinstance(root, Diagnostic):
        raise click.BadParameter(f"{path}: {root.message}", param_hint="-f")
    inner = root.data.get("endpoint")
    return inner if isinstance(inner, dict) else root.data


async def _negotiate(
    client: ServiceClient, proposal: Proposal, terms: Mapping[str, Any], *, as_json: bool
) -> Synthesis | None:
    """Propose and return the synthesis; print why there is none."""
    endpoint = proposal.endpoint
    try:
        return await client.propose(endpoint.method, endpoint.path, definition=proposal.definition, **terms)
    except ServiceError as error:
        if as_json:
            escalated = {"escalation_id": error.escalation_id} if isinstance(error, ProposalEscalatedError) else {}
            print_json({"status": error.status, "body": error.reply.json(), **escalated})
        else:
            print_refusal(error.reply)
            _print_lines(_rejection(error))
    except (ProposalPendingError, ContractMismatchError) as error:
        if as_json:
            print_json({"status": error.reply.status, "error": str(error), "body": error.reply.json()})
        else:
            _print_lines([line((f"{error.reply.status} {error.reply.reason}", "bold red")), line(str(error))])
    return None


def _rejection(error: ServiceError) -> Iterator[Text]:
    yield from (line(f"note: {note}") for note in getattr(error, "__notes__", ()))
    if isinstance(error, ProposalEscalatedError):
        yield line(f"escalated: people decide about it as case {error.escalation_id}")
    if not isinstance(error, ProposalRejectedError):
        return
    yield line(f"reason: {error.rejection or 'not given'}")
    for miss in error.misses[:_MISSES]:
        nearest = f" (nearest: {miss['nearest']})" if "nearest" in miss else ""
        yield line(f"missing: {miss.get('field')}: {miss.get('reason')}{nearest}")
    yield from (line(f"counter-proposal: {step}") for step in error.counter_plan)
    for entry in error.similar[:_SIMILAR]:
        about = entry.get("description") or ""
        yield line(f"similar: {entry.get('method')} {entry.get('path')}  {about}")
    if error.must_escalate and not isinstance(error, ProposalEscalatedError):
        yield line("help: the service takes no further proposal of this negotiation; use --escalate")


def _summary(synthesis: Synthesis, *, explain: bool) -> Iterator[Text]:
    endpoint, semantic = synthesis.endpoint, synthesis.endpoint.semantic
    state = "approved" if synthesis.synthesis_id is not None else "exists"
    yield line((state, "bold green"), f" {endpoint}", (f"  {synthesis.synthesis_id or ''}", "dim"))
    repeat = "idempotent" if semantic.is_idempotent else "not idempotent"
    yield line(f"  impact    {semantic.impact}, {repeat}, confidence {semantic.confidence:g}")
    yield line(f"  input     {_fields(endpoint.input_schema)}")
    yield line(f"  output    {_fields(endpoint.output_schema)}")
    if endpoint.required_scopes:
        yield line(f"  scopes    {', '.join(endpoint.required_scopes)}")
    if synthesis.synthesis_id is not None:
        kept = f"until {synthesis.expires_at}" if synthesis.expires_at else "until the session ends"
        yield line(f"  lives     {kept}{', persistent' if synthesis.persistent else ''}")
    if explain:
        steps = synthesis.explanation or ("the service does not explain it",)
        yield from (line(f"  {'plan' if not number else '':<8}  {step}") for number, step in enumerate(steps))
    yield from (line((f"  note      {note}", "yellow")) for note in synthesis.notes)


def _fields(schema: Mapping[str, Any]) -> str:
    return write_fields(SchemaView(schema, schema), _WIDEST, typed=True) or "none"


def _advice(synthesis: Synthesis, service: str, options: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the command that calls the endpoint later. One that was loaded locally is gone by then."""
    if synthesis.synthesis_id is None or "://" not in service:
        return
    endpoint = synthesis.endpoint
    # The manifest does not list an endpoint of a session, so `bespeak call` does not know its types.
    typed = property_types(endpoint.input_schema).items()
    inputs = (f"{name}{'' if 'string' in types else ':'}=..." for name, types in typed)
    words = ["bespeak", "call", service, *endpoint.key, *inputs]
    for option, name in (("--agent-id", "agent_id"), ("--as", "as_name")):
        words += [option, options[name]] if options[name] else []
    words += [word for scope in options["scopes"] for word in ("--scope", scope)]
    words += ["-H", f"Synthesis-Id: {synthesis.synthesis_id}"]
    # The path and the names are the server's: quoted, so that a shell does not run them.
    yield line((f"call it: {shlex.join(words)}", "dim"))


async def _call(synthesis: Synthesis, fields: tuple[str, ...], *, as_json: bool) -> int:
    types = property_types(synthesis.endpoint.input_schema)
    try:
        output = await synthesis.call(**dict(read_field(field, types) for field in fields))
    except ServiceError as error:
        if as_json:
            print_json({"status": error.status, **synthesis.to_json(), "body": error.reply.json()})
        else:
            print_refusal(error.reply)
        return 1
    print_json({"status": 200, **synthesis.to_json(), "output": output} if as_json else output)
    return 0


def _print_lines(lines: Iterator[Text] | list[Text], *, aside: bool = True) -> None:
    out = console(stderr=aside)
    for each in lines:
        out.print(each)
