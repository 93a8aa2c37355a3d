"""SUSPEND pauses a session or releases a synthesis, RESUME continues a session or workflow (core 4.11, 8, 12)."""

from __future__ import annotations

import hashlib
import math
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
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import RELEASE_SYNTHESIS, RESUME
from bespeak.runtime.handling import (
    RefusedError,
    check_needs,
    check_size,
    effects,
    handler,
    invalid,
    new_id,
    read_future,
    stateful,
    to_json,
)
from bespeak.runtime.sessions import EXPIRED
from bespeak.state.store.commands.sessions import SUSPENDED, ResumeSession, Session, SuspendSession

MOST_CHECKPOINT: Final = 64 * 1024  # maximum bytes of a checkpoint
_NONCE_BYTES: Final = 16
NOT_FOUND: Final = Refused(
    status.NOT_FOUND,
    "session-not-found",
    "This agent has no such session; a session begins with the first request that carries its Session-ID.",
)
"""Refusal for a session that does not exist or belongs to another agent."""
NO_SYNTHESIS: Final = Refused(
    status.NOT_FOUND, "synthesis-not-found", "This agent has no living synthesis with this id."
)
_ALREADY: Final = Refused(status.CONFLICT, "session-suspended", "The session is already suspended.")


@handler
def suspend(call: RoutedCall) -> Effects:
    given = call.input
    if not {"session_id", "synthesis_id"} & given.keys():
        message = "a `session_id` is required, or the `synthesis_id` of an endpoint to release"
        raise RefusedError(refuse_input(call.method, call.path, [Violation("", "", "required", message)]))
    if "synthesis_id" in given:
        if call.server.own_endpoints is None:
            raise RefusedError(NO_SYNTHESIS)
        released: Effects = call.server.hooks[RELEASE_SYNTHESIS](call, given["synthesis_id"])
        return released
    check_needs(call)
    session_id, latest = given["session_id"], time.time() + call.server.sessions.suspended
    # As requested, limited by the server's maximum.
    resume_by = min(read_future(given, "resume_by", most=math.inf) or latest, latest)
    checkpoint = _checkpoint(given)
    if not is_session_id(session_id):
        raise RefusedError(NOT_FOUND)
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    command = SuspendSession(
        session_id=session_id,
        agent_id=call.agent_id or "",
        tls_identity=call.principal.tls_identity or "",
        suspension_id=new_id("susp"),
        nonce_hash=hash_nonce(nonce),
        resume_by=resume_by,
        reason=given.get("reason"),
        checkpoint=checkpoint,
    )
    result = {
        "suspension_id": command.suspension_id,
        "session_id": session_id,
        "resumption_nonce": nonce,
        "resume_by": write_instant(resume_by),
        "status": SUSPENDED,
    }
    return effects([command], lambda _: result, {"suspended": _ALREADY, "expired": EXPIRED, "": NOT_FOUND})


def hash_nonce(nonce: str) -> str:
    """Return the digest under which a nonce is stored."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def _checkpoint(given: Mapping[str, Any]) -> str | None:
    if "checkpoint" not in given:
        return None
    checkpoint = to_json(given["checkpoint"])
    check_size("checkpoint", len(checkpoint.encode()), MOST_CHECKPOINT)
    return checkpoint


_REFUSALS: Final[Mapping[str, Refused]] = {
    "expired": EXPIRED,
    "not-suspended": Refused(status.CONFLICT, "session-not-suspended", "The session is not suspended."),
    "nonce-wrong": Refused(
        status.CONFLICT, "resumption-nonce-wrong", "This is not the nonce that SUSPEND returned for the session."
    ),
    "nonce-used": Refused(
        status.CONFLICT, "resumption-nonce-used", "The nonce has already been used: the session is active."
    ),
}


@stateful
async def resume(call: RoutedCall) -> Effects:
    """Answer RESUME /. Only the agent of the session or workflow may resume it."""
    checkpoint = _checkpoint(call.input)
    resuming: Coroutine[Any, Any, Effects | None] | None = call.server.hooks[RESUME](call)
    if resuming is None:
        return _resume_session(call, checkpoint)
    try:
        resumed = await resuming
    except RefusedError as error:
        if error.refused.status != status.NOT_FOUND or "resumption_nonce" not in call.input:
            raise
        # A session may have such an id, which its client has chosen.
        return _resume_session(call, checkpoint, unknown=error.refused)
    return _resume_session(call, checkpoint) if resumed is None else resumed


def _resume_session(call: RoutedCall, checkpoint: str | None, unknown: Refused = NOT_FOUND) -> Effects:
    given = call.input
    if not is_session_id(given["workflow_id"]):
        raise RefusedError(unknown)
    if "resumption_nonce" not in given:
        raise invalid("resumption_nonce", "is missing: SUSPEND returned it for the session.")
    command = ResumeSession(
        session_id=given["workflow_id"],
        agent_id=call.agent_id or "",
        tls_identity=call.principal.tls_identity or "",
        nonce_hash=hash_nonce(given["resumption_nonce"]),
        idle=call.server.sessions.idle,
        checkpoint=checkpoint,
    )

    def result(results: Sequence[Session]) -> dict[str, Any]:
        session = results[0]
        told = {"workflow_id": session.session_id, "suspension_id": session.suspension_id, "status": session.state}
        return told if session.checkpoint is None else {**told, "checkpoint": msgspec.Raw(session.checkpoint.encode())}

    return effects([command], result, {**_REFUSALS, "not-found": unknown})
