"""`bespeak people`: what agents have sent to people, and their answers."""

from __future__ import annotations

import secrets
from typing import Any

import click

from bespeak.extensions.messages.message import Confirmed
from bespeak.extensions.messages.methods_inbox import ConfirmMessage, show_message
from bespeak.extensions.messages.people import text_of
from bespeak.extensions.messages.recipients import PERSON
from bespeak.extensions.messages.store import MESSAGE, UNREAD, ListMessages
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.store import Conflict, Store
from bespeak.terminal import EXIT_GOOD, CommandFailedError
from bespeak.terminal.console import json_option, limit_option, line, print_result
from bespeak.terminal.decisions import carry_out, check_decision, decision_options
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable


@click.group(short_help="Show what waits for people, and answer it.")
def people() -> None:
    """Show what agents have sent to people, and answer it. `bespeak cases` has what waits for a decision."""


@people.command("show")
@click.argument("name")
@store_options
@limit_option("messages", 100)
@json_option
def show_inbox(*, name: str, target: str, override: str | None, limit: int, as_json: bool) -> int:
    """Show what a person has not answered, the oldest first. NAME is that of the person, such as operator."""

    async def look(store: Store) -> list[tuple[Record, str | None]]:
        found: list[tuple[Record, str | None]] = await store.read(ListMessages(f"{PERSON}:{name}", UNREAD, limit=limit))
        return found

    shown = [show_message(*one) for one in visit_store(target, override, look)]
    lines = [line(f"Nothing waits for {printable(name)}.")] if not shown else []
    for one in shown:
        lines.append(line((one["message_id"], "bold"), f"  {one['sent_at']}  {one['kind']} of {one['sender'][:12]}"))
        lines += [line(f"  {printable(text)}") for text in text_of(one["content"])[:2000].splitlines()]
    print_result({"name": name, "messages": shown}, lines, as_json=as_json)
    return EXIT_GOOD


@people.command("acknowledge")
@click.argument("message")
@store_options
@decision_options
@click.option("--decline", is_flag=True, help="Decline it: a task that is delegated to the person.")
def acknowledge(
    *, message: str, target: str, override: str | None, reason: str | None, by: str | None, decline: bool
) -> int:
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
    return EXIT_GOOD
