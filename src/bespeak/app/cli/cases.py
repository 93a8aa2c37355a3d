"""`bespeak cases` and `bespeak people`: what waits for a decision or an answer of a person, and the operator's word."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.extensions.messages.message import Confirmed
from bespeak.extensions.messages.methods_inbox import ConfirmMessage, show_message
from bespeak.extensions.messages.people import text_of
from bespeak.extensions.messages.recipients import PERSON
from bespeak.extensions.messages.store import MESSAGE, UNREAD, ListMessages
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.cases import (
    ACCEPTED,
    DEFERRED,
    PENDING,
    REJECTED,
    STATES,
    Case,
    ListCases,
    ReadCase,
)
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.store import Conflict, Store
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import (
    json_option,
    limit_option,
    line,
    print_json,
    print_lines,
    print_list,
    print_result,
    state_option,
)
from bespeak.terminal.decisions import carry_out, check_decision, decision_options
from bespeak.terminal.panels import Decider, decide_case, describe_case, explain_undecided, name_case
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable

_OPEN: Final = "open"
_STYLES: Final = {PENDING: "bold yellow", DEFERRED: "yellow", ACCEPTED: "green", REJECTED: "red"}
_MOMENTS: Final = ("created", "deadline", "expires", "decided_at")


class _Cases(click.Group):
    """The commands of cases, with the words that other tools use for accepting."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, "accept" if cmd_name in ("confirm", "approve") else cmd_name)


@click.group(cls=_Cases)
def cases() -> None:
    """List, accept and reject open decisions. `confirm` and `approve` are synonyms of accept.

    TARGET is the deployment, whose configuration names the store; --store overrides it.
    """


def _decision(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("case")(store_options(decision_options(command)))


@cases.command("list")
@store_options
@state_option([_OPEN, *STATES], _OPEN, "Only cases in this state; open means pending or deferred.")
@limit_option("cases")
@json_option
def list_(target: str, override: str | None, state: str, limit: int, as_json: bool) -> None:
    """List cases, oldest first."""

    async def read(store: Store) -> list[Case]:
        states = {_OPEN: (PENDING, DEFERRED), "all": (None,)}.get(state, (state,))
        found = [case for one in states for case in await store.read(ListCases(one, limit))]
        return sorted(found, key=lambda case: (case.created, case.case_id))[:limit]

    nothing = "no cases" if state == "all" else f"no {state} cases"
    print_list(visit_store(target, override, read), _as_dict, _summary, nothing, as_json=as_json)


@cases.command()
@click.argument("case")
@store_options
@json_option
def show(case: str, target: str, override: str | None, as_json: bool) -> None:
    """Show a case: the request, the agent and the decision."""
    found: Case | None = visit_store(target, override, lambda store: store.read(ReadCase(case)))
    if found is None:
        raise CommandFailedError(f"case {case!r} not found; see `bespeak cases list`")
    if as_json:
        print_json(_as_dict(found))
        return
    print_lines(_details(found))
    click.echo("request")
    print_json(msgspec.json.decode(found.subject))


@cases.command(short_help="Accept a case.")
@_decision
def accept(case: str, target: str, override: str | None, reason: str | None, by: str | None) -> None:
    """Accept a case: a confirmed call may be carried out once, or an escalated task resumes.

    \b
    Example:
    bespeak cases accept conf-2f6c... examples/hotel --reason "guest agreed by phone"
    """
    _decide(ACCEPTED, case, target, override, reason=reason, by=by)


@cases.command(short_help="Reject a case.")
@_decision
def reject(case: str, target: str, override: str | None, reason: str | None, by: str | None) -> None:
    """Reject a case: the call is not carried out, or the escalated task is not resumed."""
    _decide(REJECTED, case, target, override, reason=reason, by=by)


def _decide(status: str, case: str, target: str, override: str | None, *, reason: str | None, by: str | None) -> None:
    name = check_decision(case, reason, by)
    command, details = decide_case(case, status, Decider.named(name), reason)
    outcome = carry_out(target, override, command, verb="CONFIRM", path="/", details=details)
    if isinstance(outcome, Conflict):
        why = explain_undecided(case, name, outcome)
        raise CommandFailedError(why or f"case {case!r} not found; see `bespeak cases list`")
    decided: Case = outcome[0]
    click.echo(f"{decided.case_id} is {status} by {decided.decided_by}, attestation {decided.attestation_id}")


def _as_dict(case: Case) -> dict[str, Any]:
    values = {name: getattr(case, name) for name in ("case_id", "kind", "state", *case.__struct_fields__)}
    values |= {name: write_instant(values[name]) for name in _MOMENTS if values[name] is not None}
    values["subject"] = msgspec.json.decode(case.subject)
    for name in ("attestation", "parties", "decided_parties"):
        values[name] = msgspec.json.decode(values[name]) if values[name] else None
    return values


def _summary(case: Case) -> Text:
    return line(
        (f"{case.state:<9}", _STYLES.get(case.state, "dim")),
        f" {case.case_id}  {write_instant(case.created)}  {case.kind:<12}  {name_case(case)[:120]}",
        (f"  by {case.agent_id[:12] or 'anonymous'} to {case.recipient[:64]}", "dim"),
    )


def _details(case: Case) -> Iterator[Text]:
    yield line((case.case_id, "bold"))
    for name, value in describe_case(case).items():
        if value is not None:
            yield line(f"  {name.replace('_', ' '):<12} {value}")


@click.group(short_help="Show what waits for people, and answer it.")
def people() -> None:
    """Show what agents have sent to people, and answer it. `bespeak cases` has what waits for a decision."""


@people.command("show")
@click.argument("name")
@store_options
@limit_option("messages", 100)
@json_option
def show_inbox(*, name: str, target: str, override: str | None, limit: int, as_json: bool) -> None:
    """Show what a person has not answered, the oldest first. NAME is that of the person, such as operator."""

    wanted = ListMessages(f"{PERSON}:{name}", UNREAD, limit=limit)
    shown = [show_message(*one) for one in visit_store(target, override, lambda store: store.read(wanted))]
    lines = [line(f"Nothing waits for {printable(name)}.")] if not shown else []
    for one in shown:
        lines.append(line((one["message_id"], "bold"), f"  {one['sent_at']}  {one['kind']} of {one['sender'][:12]}"))
        lines += [line(f"  {printable(text)}") for text in text_of(one["content"])[:2000].splitlines()]
    print_result({"name": name, "messages": shown}, lines, as_json=as_json)


@people.command("acknowledge")
@click.argument("message")
@store_options
@decision_options
@click.option("--decline", is_flag=True, help="Decline it: a task that is delegated to the person.")
def acknowledge(
    *, message: str, target: str, override: str | None, reason: str | None, by: str | None, decline: bool
) -> None:
    """Acknowledge a message for its recipient, or accept a task. Its sender is told who did it."""
    name, status = check_decision(message, reason, by), "rejected" if decline else "accepted"
    found: Record | None = visit_store(target, override, lambda store: store.read(FindRecord((MESSAGE,), message)))
    if found is None or not found.owner.startswith(PERSON):
        raise CommandFailedError(f"no person has a message {message!r}; see `bespeak people show NAME`")
    attestation: dict[str, Any] = {"by": f"operator:{name}"}
    confirmed = Confirmed(status, f"att-{secrets.token_hex(16)}", reason, attestation)
    command = ConfirmMessage(message, found.owner, confirmed, "operator")
    details = {"target_id": message, "status": status, "decided_by": name, "reason": reason}
    outcome = carry_out(target, override, command, verb="CONFIRM", path="/", details=details)
    if isinstance(outcome, Conflict):
        raise CommandFailedError(f"{message} was answered before: it is {outcome.details.get('state', 'gone')}")
    click.echo(f"{message} is {status} by {name} for {found.owner.partition(':')[2]}")
