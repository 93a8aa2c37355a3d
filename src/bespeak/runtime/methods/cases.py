"""ESCALATE opens a case for a decision that an agent must not take alone; CONFIRM decides it (core 4.9, 4.10)."""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import LONGEST_TASK_ID, is_task_id
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, deciding_parties, parties_of
from bespeak.runtime.confirmations import is_case_id, too_many_cases
from bespeak.runtime.extension import ANNOUNCE
from bespeak.runtime.handling import Conflicts, RefusedError, check_size, effects, invalid, new_id, read_time, stateful
from bespeak.runtime.sessions import working_agents
from bespeak.state.store.commands import cases
from bespeak.state.store.store import Conflict

MOST_CONTENT: Final = 256 * 1024  # maximum bytes of an escalation

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_exactly = msgspec.json.Decoder(float_hook=Decimal).decode
_sorted = msgspec.json.Encoder(order="sorted", decimal_format="number").encode


@stateful
def escalate(call: RoutedCall) -> Effects:
    """Answer ESCALATE /. Repeating an escalation while it is open returns the same case."""
    given, agent_id, case_id = call.input, call.agent_id or "", new_id("esc")
    deadline = read_time(given, "deadline")
    recipient = given.get("recipient", call.server.cases.default_recipient)
    if not recipient.isprintable():
        raise invalid("recipient", "contains non-printable characters; name an agent, a person or a group.")
    if not is_task_id(given["task_id"]):
        raise invalid("task_id", f"must be 1 to {LONGEST_TASK_ID} visible characters, as in the header Task-ID.")
    # Core 4.9: as it came, because decoding a number may round it.
    came = _members(call.request.body) if call.request.body else {}
    if "parameters" in came:  # the envelope: ESCALATE has no such parameter
        came |= _members(came["parameters"])
    content = msgspec.json.encode({name: came.get(name, value) for name, value in given.items()})
    check_size("context", len(content), MOST_CONTENT)
    command = cases.OpenCase(
        case_id=case_id,
        kind=cases.ESCALATION,
        agent_id=agent_id,
        recipient=recipient,
        digest=hashlib.sha256(_sorted([agent_id, _exactly(content)])).hexdigest(),
        subject=content.decode(),
        deadline=deadline,
        announcement=call.server.hooks[ANNOUNCE](
            *(call.server, case_id, agent_id, recipient, msgspec.Raw(content)),
            priority=given.get("priority", "normal"),
            call=call,
        ),
        parties=parties_of(call),
        pause=cases.PauseTask(case_id, given["task_id"], working_agents(call)),
        most_open=call.server.cases.most_open,
    )
    return Effects((command,), _respond, call.server.tasks.refresh)


def _respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
    if isinstance(outcome, Conflict):
        return too_many_cases(outcome)
    case: cases.Case = outcome[0].case
    result: dict[str, Any] = {
        "escalation_id": case.case_id,
        "routed_to": case.recipient,
        "status": case.state,
        "task_paused": True,
    }
    if case.deadline is not None:
        result["estimated_review_by"] = write_instant(case.deadline)
    return Envelope(result, status.ACCEPTED)


SCOPES: Final[Mapping[str, str]] = {cases.ESCALATION: "escalation:confirm", cases.CONFIRMATION: "confirmation:decide"}
"""Scope with which an agent may decide cases of a kind addressed to others."""

CASES: Final = "esc-"  # begins ids of escalations: to confirm one is to decide it, not to acknowledge its message
MOST_ATTESTATION: Final = 64 * 1024  # maximum bytes of an attestation
_LONGEST_REASON: Final = 4096

_NOT_FOUND: Final = Refused(status.NOT_FOUND, "target-not-found", "No case has this target_id.")


@stateful
async def confirm(call: RoutedCall) -> Effects | Envelope:
    given, principal = call.input, call.principal
    reason = given.get("reason")
    if reason is not None and (len(reason) > _LONGEST_REASON or "\0" in reason):
        raise invalid("reason", f"must be a text of up to {_LONGEST_REASON} characters without NUL.")
    attestation = msgspec.json.encode(given["attestation"]) if "attestation" in given else None
    check_size("attestation", len(attestation or b""), MOST_ATTESTATION)
    if not is_case_id(given["target_id"]):
        raise RefusedError(_NOT_FOUND)
    for confirm_own in call.server.confirms:
        answering: Coroutine[Any, Any, Effects | Envelope] | None = confirm_own(call)
        if answering is not None:
            return await answering
    command = cases.DecideCase(
        case_id=given["target_id"],
        status=given["status"],
        decided_by=call.agent_id or "",
        attestation_id=new_id("att"),
        kinds=tuple(kind for kind, scope in SCOPES.items() if principal.scopes.covers(scope)),
        parties=deciding_parties(call),
        reason=reason,
        attestation=None if attestation is None else attestation.decode(),
    )
    return effects([command], _tell_decision, _CONFLICTS, call.server.tasks.refresh)


def _tell_decision(results: Sequence[cases.Case]) -> dict[str, Any]:
    case = results[0]
    return {
        "target_id": case.case_id,
        "status": cases.ACCEPTED if case.state == cases.EXECUTED else case.state,
        "confirmed_at": write_instant(case.decided_at or 0.0),
        "attestation_id": case.attestation_id,
    }


def _not_permitted(found: Mapping[str, Any]) -> Refused:
    scope = SCOPES[found["kind"]]
    message = f"Only the recipient, or an agent with the scope {scope}, may take this decision."
    return Refused(status.FORBIDDEN, "decision-not-permitted", message, {"required_scopes": [scope]})


def _already_decided(found: Mapping[str, Any]) -> Refused:
    first = {**found, "decided_at": write_instant(found["decided_at"])}
    message = f"This was {found['status']} at {first['decided_at']}; a decision is final."
    return Refused(status.CONFLICT, "already-decided", message, {"decision": first})


_CONFLICTS: Final[Conflicts] = {
    "own-case": Refused(
        status.FORBIDDEN,
        "own-case",
        "Another party must decide this: the caller is behind the request, itself or through a shared "
        "delegator, principal, key or token subject.",
    ),
    "not-permitted": _not_permitted,
    "already-decided": _already_decided,
    "expired": Refused(status.TIMEOUT, "case-expired", "The deadline of this decision has passed."),
    "": _NOT_FOUND,
}
