"""CONFIRM: decides a case, once, by someone other than the requester (core 4.10)."""

from __future__ import annotations

import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.confirmations import is_case_id
from bespeak.runtime.messages.confirmation import confirm_message
from bespeak.runtime.messages.message import received_id
from bespeak.runtime.methods.needs import invalid, refuse_without_needs, too_large
from bespeak.runtime.methods.transact.hold import confirm_hold
from bespeak.runtime.methods.transact.purchase import PREFIX as PURCHASE
from bespeak.runtime.parties import deciding_parties
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, ESCALATION, EXECUTED, Case, DecideCase

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
    return Effects((command,), _respond, call.server.tasks.refresh)


def _respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
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
