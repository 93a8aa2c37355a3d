"""ESCALATE opens a case for a decision that an agent must not take alone; CONFIRM decides it (core 4.9, 4.10)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import LONGEST_TASK_ID, is_task_id
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import (
    RoutedCall,
    deciding_parties,
    invalid,
    parties_of,
    read_time,
    refuse_without_needs,
    too_large,
)
from bespeak.runtime.confirmations import is_case_id, too_many_cases
from bespeak.runtime.messages.message import announce, received_id
from bespeak.runtime.messages.methods_inbox import confirm_message
from bespeak.runtime.payments.methods import PREFIX as PURCHASE
from bespeak.runtime.payments.methods import confirm_hold
from bespeak.runtime.sessions import working_agents
from bespeak.state.store.commands.cases import (
    ACCEPTED,
    CONFIRMATION,
    ESCALATION,
    EXECUTED,
    Case,
    DecideCase,
    OpenCase,
    PauseTask,
)
from bespeak.state.store.store import Conflict

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


SCOPES: Final[Mapping[str, str]] = {ESCALATION: "escalation:confirm", CONFIRMATION: "confirmation:decide"}
"""Scope with which an agent may decide cases of a kind addressed to others."""

CASES: Final = "esc-"
"""Beginning of the ids of escalations: to confirm one is to decide it, not to acknowledge its message."""
MOST_ATTESTATION: Final = 64 * 1024
"""Maximum bytes of an attestation."""
_LONGEST_REASON: Final = 4096

_NOT_FOUND: Final = Refused(status.NOT_FOUND, "target-not-found", "No case has this target_id.")


def confirm(call: RoutedCall) -> Effects | Refused | Coroutine[Any, Any, Effects | Envelope | Refused]:
    """Answer CONFIRM /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given, principal = call.input, call.principal
    reason = given.get("reason")
    if reason is not None and (len(reason) > _LONGEST_REASON or "\0" in reason):
        return invalid("reason", f"must be a text of up to {_LONGEST_REASON} characters without NUL.")
    attestation = msgspec.json.encode(given["attestation"]) if "attestation" in given else None
    if attestation is not None and len(attestation) > MOST_ATTESTATION:
        return too_large("attestation", MOST_ATTESTATION)
    if not is_case_id(given["target_id"]):
        return _NOT_FOUND
    received = received_id(given["target_id"], call.agent_id or "")
    if received is not None and not given["target_id"].startswith(CASES):
        return confirm_message(call, received)
    if given["target_id"].startswith(PURCHASE) and call.server.payments is not None:
        return confirm_hold(call)
    command = DecideCase(
        case_id=given["target_id"],
        status=given["status"],
        decided_by=call.agent_id or "",
        attestation_id=f"att-{secrets.token_hex(16)}",
        kinds=tuple(kind for kind, scope in SCOPES.items() if principal.scopes.covers(scope)),
        parties=deciding_parties(call),
        reason=reason,
        attestation=None if attestation is None else attestation.decode(),
    )
    return Effects((command,), _confirm_respond, call.server.tasks.refresh)


def _confirm_respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
    if isinstance(outcome, Conflict):
        return _refuse(outcome)
    case: Case = outcome[0]
    return Envelope(
        {
            "target_id": case.case_id,
            "status": ACCEPTED if case.state == EXECUTED else case.state,
            "confirmed_at": write_instant(case.decided_at or 0.0),
            "attestation_id": case.attestation_id,
        }
    )


def _refuse(conflict: Conflict) -> Refused:
    details = conflict.details
    match conflict.reason:
        case "own-case":
            return Refused(
                status.FORBIDDEN,
                "own-case",
                "Another party must decide this: the caller is behind the request, itself or through a shared "
                "delegator, principal, key or token subject.",
            )
        case "not-permitted":
            scope = SCOPES[details["kind"]]
            return Refused(
                status.FORBIDDEN,
                "decision-not-permitted",
                f"Only the recipient, or an agent with the scope {scope}, may take this decision.",
                {"required_scopes": [scope]},
            )
        case "already-decided":
            first = {**details, "decided_at": write_instant(details["decided_at"])}
            return Refused(
                status.CONFLICT,
                "already-decided",
                f"This was {details['status']} at {first['decided_at']}; a decision is final.",
                {"decision": first},
            )
        case "expired":
            return Refused(status.TIMEOUT, "case-expired", "The deadline of this decision has passed.")
        case _:
            return _NOT_FOUND
