"""SUSPEND: pauses a session until it is resumed (core 4.11), or releases a synthesis or a proposal (core 12)."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.schema.report import refuse_input
from bespeak.contract.schema.violation import Violation
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.session_id import is_session_id
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import invalid, read_time, refuse_without_needs, too_large
from bespeak.runtime.rate import caller
from bespeak.runtime.sessions import EXPIRED
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.proposals import ProposalRow, ReleaseSynthesis, proposal_id_of
from bespeak.state.store.commands.sessions import SUSPENDED, SuspendSession

MOST_CHECKPOINT: Final = 64 * 1024
"""Maximum bytes of a checkpoint."""

_NONCE_BYTES: Final = 16
NOT_FOUND: Final = Refused(
    status.NOT_FOUND,
    "session-not-found",
    "This agent has no such session; a session begins with the first request that carries its Session-ID.",
)
"""Refusal for a session that does not exist or belongs to another agent."""
_NO_SYNTHESIS: Final = Refused(
    status.NOT_FOUND, "synthesis-not-found", "This agent has no living synthesis with this id."
)
_OF_ANOTHER: Final = Refused(
    status.FORBIDDEN, "synthesis-of-another", "The synthesis belongs to another agent, which alone may release it."
)
_ALREADY: Final = Refused(status.CONFLICT, "session-suspended", "The session is already suspended.")


def suspend(call: RoutedCall) -> Effects | Refused:
    """Answer SUSPEND /."""
    given = call.input
    if not {"session_id", "synthesis_id"} & given.keys():
        message = "a `session_id` is required, or the `synthesis_id` of an endpoint to release"
        return refuse_input(call.method, call.path, [Violation("", "", "required", message)])
    if "synthesis_id" in given:
        return _release(call, given["synthesis_id"])
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    session_id = given["session_id"]
    resume_by = _resume_by(given.get("resume_by"), time.time(), call.server.sessions.suspended)
    if isinstance(resume_by, Refused):
        return resume_by
    checkpoint = msgspec.json.encode(given["checkpoint"]) if "checkpoint" in given else None
    if checkpoint is not None and len(checkpoint) > MOST_CHECKPOINT:
        return too_large("checkpoint", MOST_CHECKPOINT)
    if not is_session_id(session_id):
        return NOT_FOUND
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    command = SuspendSession(
        session_id=session_id,
        agent_id=call.agent_id or "",
        tls_identity=call.principal.tls_identity or "",
        suspension_id=f"susp-{secrets.token_hex(16)}",
        nonce_hash=hash_nonce(nonce),
        resume_by=resume_by,
        reason=given.get("reason"),
        checkpoint=None if checkpoint is None else checkpoint.decode(),
    )
    return Effects((command,), lambda outcome: _respond(command, nonce, outcome))


def _release(call: RoutedCall, synthesis_id: str) -> Effects | Refused:
    """End a synthesis of the caller, or withdraw a proposal that is pending or rejected."""
    negotiator = call.server.negotiator
    if negotiator is None:
        return _NO_SYNTHESIS
    owner = caller(call.principal, call.request.connection.address)
    command = ReleaseSynthesis(proposal_id_of(synthesis_id), owner)

    def respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(outcome, Conflict):
            return _OF_ANOTHER if outcome.reason == "of-another" else _NO_SYNTHESIS
        row: ProposalRow = outcome[0]
        return Envelope({"synthesis_id": row.synthesis_id, "synthesis_cleared": True, "status": row.state})

    return Effects((command,), respond, negotiator.refresh)


def hash_nonce(nonce: str) -> str:
    """Return the digest under which a nonce is stored."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def _resume_by(text: str | None, now: float, most: float) -> float | Refused:
    """Return the time by which the session must be resumed: as requested, limited by the server's maximum."""
    if text is None:
        return now + most
    wanted = read_time("resume_by", text)
    if isinstance(wanted, Refused):
        return wanted
    if wanted <= now:
        return invalid("resume_by", "is in the past; name a time in the future.")
    return min(wanted, now + most)


def _respond(command: SuspendSession, nonce: str, outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
    if isinstance(outcome, Conflict):
        return {"suspended": _ALREADY, "expired": EXPIRED}.get(outcome.reason, NOT_FOUND)
    return Envelope(
        {
            "suspension_id": command.suspension_id,
            "session_id": command.session_id,
            "resumption_nonce": nonce,
            "resume_by": write_instant(command.resume_by),
            "status": SUSPENDED,
        }
    )
