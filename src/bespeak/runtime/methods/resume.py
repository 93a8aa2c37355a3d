"""RESUME: continues a suspended session, once, with the nonce that SUSPEND returned (Tier 2 8.7, core 8)."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.session_id import is_session_id
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import invalid, refuse_without_needs, too_large
from bespeak.runtime.methods.orchestrate.resumption import is_workflow_id, resume_workflow
from bespeak.runtime.methods.suspend import MOST_CHECKPOINT, NOT_FOUND, hash_nonce
from bespeak.runtime.sessions import EXPIRED
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.sessions import ResumeSession, Session

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
            return unknown if is_unknown else _respond(results)

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
    return Effects((command,), _respond)


def _respond(outcome: Sequence[Any] | Conflict) -> Envelope | Refused:
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
