"""ESCALATE: opens a durable case for a decision that an agent must not take alone (core 4.9)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.task_id import LONGEST_TASK_ID, is_task_id
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.confirmations import too_many_cases
from bespeak.runtime.messages.announcement import announce
from bespeak.runtime.methods.needs import invalid, read_time, refuse_without_needs, too_large
from bespeak.runtime.parties import parties_of
from bespeak.runtime.pausing import working_agents
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.cases import ESCALATION, Case, OpenCase
from bespeak.state.store.commands.tasks import PauseTask

MOST_CONTENT: Final = 256 * 1024
"""Maximum bytes of an escalation."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_exactly = msgspec.json.Decoder(float_hook=Decimal).decode
_sorted = msgspec.json.Encoder(order="sorted", decimal_format="number").encode


def escalate(call: RoutedCall) -> Effects | Refused:
    """Answer ESCALATE /. Repeating an escalation while it is open returns the same case."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    deadline = read_time("deadline", given["deadline"]) if "deadline" in given else None
    if isinstance(deadline, Refused):
        return deadline
    recipient = given.get("recipient", call.server.cases.default_recipient)
    if not recipient.isprintable():
        return invalid("recipient", "contains non-printable characters; name an agent, a person or a group.")
    if not is_task_id(given["task_id"]):
        return invalid("task_id", f"must be 1 to {LONGEST_TASK_ID} visible characters, as in the header Task-ID.")
    content = msgspec.json.encode(_raw_input(call))
    if len(content) > MOST_CONTENT:
        return too_large("context", MOST_CONTENT)
    agent_id = call.agent_id or ""
    case_id = f"esc-{secrets.token_hex(16)}"
    command = OpenCase(
        case_id=case_id,
        kind=ESCALATION,
        agent_id=agent_id,
        recipient=recipient,
        digest=hashlib.sha256(_sorted([agent_id, _exactly(content)])).hexdigest(),
        subject=content.decode(),
        deadline=deadline,
        announcement=announce(
            call.server, case_id, agent_id, recipient, msgspec.Raw(content), priority=given.get("priority", "normal")
        ),
        parties=parties_of(call),
        pause=PauseTask(case_id, given["task_id"], working_agents(call)),
        most_open=call.server.cases.most_open,
    )
    return Effects((command,), _respond, call.server.tasks.refresh)


def _raw_input(call: RoutedCall) -> dict[str, Any]:
    """Return the input with its members as raw JSON from the body (core 4.9): decoding a number may round it."""
    came = _members(call.request.body) if call.request.body else {}
    if "parameters" in came:  # the envelope: ESCALATE has no such parameter
        came |= _members(came["parameters"])
    return {name: came.get(name, value) for name, value in call.input.items()}


def _respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
    if isinstance(outcome, Conflict):
        return too_many_cases(outcome)
    case: Case = outcome[0].case
    result: dict[str, Any] = {
        "escalation_id": case.case_id,
        "routed_to": case.recipient,
        "status": case.state,
        "task_paused": True,
    }
    if case.deadline is not None:
        result["estimated_review_by"] = write_instant(case.deadline)
    return Envelope(result, status.ACCEPTED)
