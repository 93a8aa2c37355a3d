"""SUSPEND pauses a session, RESUME continues it (core 4.11, 8; Tier 2 8.7).

SUSPEND also releases a synthesis or a proposal (core 12). RESUME also continues a paused workflow.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import is_session_id
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, invalid, read_time, refuse_without_needs, too_large
from bespeak.runtime.rate import caller
from bespeak.runtime.sessions import EXPIRED
from bespeak.runtime.workflows.methods import is_workflow_id, resume_workflow
from bespeak.state.store.commands.proposals import ProposalRow, ReleaseSynthesis, proposal_id_of
from bespeak.state.store.commands.sessions import SUSPENDED, ResumeSession, Session, SuspendSession
from bespeak.state.store.store import Conflict

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


_REFUSALS: Final[Mapping[str, Refused]] = {
    "not-found": NOT_FOUND,
    "expired": EXPIRED,
    "not-suspended": Refused(status.CONFLICT, "session-not-suspended", "The session is not suspended."),
    "nonce-wrong": Refused(
        status.CONFLICT, "resumption-nonce-wrong", "This is not the nonce that SUSPEND returned for the session."
    ),
    "nonce-used": Refused(
        status.CONFLICT, "resumption-nonce-used", "The nonce has already been used: the session is active."
    ),
}


def resume(call: RoutedCall) -> Effects | Refused | Coroutine[Any, Any, Effects | Refused]:
    """Answer RESUME /. Only the agent of the session or workflow may resume it."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    checkpoint = msgspec.json.encode(given["checkpoint"]) if "checkpoint" in given else None
    if checkpoint is not None and len(checkpoint) > MOST_CHECKPOINT:
        return too_large("checkpoint", MOST_CHECKPOINT)
    if is_workflow_id(given["workflow_id"]):
        return _resume_either(call, checkpoint)
    return _resume_session(call, checkpoint)


async def _resume_either(call: RoutedCall, checkpoint: bytes | None) -> Effects | Refused:
    """Resume a workflow; or the session of the same id, which its client has chosen."""
    outcome = await resume_workflow(call)
    if isinstance(outcome, Refused) and outcome.status == status.NOT_FOUND and "resumption_nonce" in call.input:
        session = _resume_session(call, checkpoint)
        unknown = outcome

        def respond(results: Sequence[Any] | Conflict) -> Envelope | Refused:
            is_unknown = isinstance(results, Conflict) and results.reason == "not-found"
            return unknown if is_unknown else _resume_respond(results)

        return msgspec.structs.replace(session, answer=respond) if isinstance(session, Effects) else outcome
    return outcome


def _resume_session(call: RoutedCall, checkpoint: bytes | None) -> Effects | Refused:
    given = call.input
    if not is_session_id(given["workflow_id"]):
        return NOT_FOUND
    if "resumption_nonce" not in given:
        return invalid("resumption_nonce", "is missing: SUSPEND returned it for the session.")
    command = ResumeSession(
        session_id=given["workflow_id"],
        agent_id=call.agent_id or "",
        tls_identity=call.principal.tls_identity or "",
        nonce_hash=hash_nonce(given["resumption_nonce"]),
        idle=call.server.sessions.idle,
        checkpoint=None if checkpoint is None else checkpoint.decode(),
    )
    return Effects((command,), _resume_respond)


def _resume_respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
    if isinstance(outcome, Conflict):
        return _REFUSALS[outcome.reason]
    session: Session = outcome[0]
    receipt: dict[str, Any] = {
        "workflow_id": session.session_id,
        "suspension_id": session.suspension_id,
        "status": session.state,
    }
    if session.checkpoint is not None:
        receipt["checkpoint"] = msgspec.Raw(session.checkpoint.encode())
    return Envelope(receipt)
