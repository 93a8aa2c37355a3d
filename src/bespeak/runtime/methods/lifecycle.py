"""ACTIVATE, DEACTIVATE, REINSTATE, REVOKE, DEPRECATE: the lifecycle of an agent.

Core 12 names the methods and leaves their authorization open. Here an agent may suspend and deprecate itself, and
everything else requires the scope `agents:manage`. Anonymous callers may change nothing.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import ID_SCHEMA
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import is_session_id
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime import handling
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import RELEASE_SYNTHESIS, RESUME
from bespeak.runtime.handling import RefusedError, effects, handler, invalid, new_id, read_future, stateful
from bespeak.runtime.sessions import EXPIRED
from bespeak.state.store.commands.agents import RETIRED, SetAgentStatus, Transition
from bespeak.state.store.commands.sessions import SUSPENDED, ResumeSession, Session, SuspendSession

MANAGE: Final = "agents:manage"  # scope that lets a caller change the state of other agents

_PLAIN: Final = "^[^\\x00-\\x1f\\x7f-\\x9f]*$"
"""Pattern without control characters: not every database stores them, and operators read these texts on terminals."""
_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "agent_id": ID_SCHEMA,
    "reason": {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": _PLAIN},
    "actor": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": _PLAIN},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleChange:
    method: StandardMethod
    status: str
    allowed_from: frozenset[str]
    by_itself: bool = False  # True if an agent may apply it to itself without a scope


def _change(
    name: str,
    description: str,
    intent: str,
    outcome: str,
    state: str,
    *,
    allowed_from: tuple[str, ...],
    by_itself: bool = False,
) -> LifecycleChange:
    required = ("agent_id", "reason") if state == RETIRED else ("agent_id",)
    method = StandardMethod(
        name=name,
        description=description,
        intent=intent,
        outcome=outcome,
        impact="reversible" if state in ("active", "suspended") else "irreversible",
        takes={key if key in required else f"{key}?": one for key, one in _PARAMETERS.items()},
    )
    return LifecycleChange(method=method, status=state, allowed_from=frozenset(allowed_from), by_itself=by_itself)


CHANGES: Final[tuple[LifecycleChange, ...]] = (
    _change(
        "ACTIVATE",
        "Lets an agent that is registered and pending act.",
        "Activate a registered agent.",
        "The agent is active.",
        "active",
        allowed_from=("pending",),
    ),
    _change(
        "DEACTIVATE",
        "Suspends an agent: its requests are refused until it is reinstated.",
        "Deactivate an agent for the time being.",
        "The agent is suspended.",
        "suspended",
        allowed_from=("active", "pending", "unreadable"),
        by_itself=True,
    ),
    _change(
        "REINSTATE",
        "Lifts the suspension of an agent.",
        "Reinstate a suspended agent.",
        "The agent is active again.",
        "active",
        allowed_from=("suspended",),
    ),
    _change(
        "REVOKE",
        "Retires an agent for ever; its id is never used again.",
        "Revoke the identity of an agent.",
        "The agent is retired.",
        RETIRED,
        allowed_from=("active", "pending", "suspended", "deprecated", "unreadable"),
    ),
    _change(
        "DEPRECATE",
        "Marks an agent as replaced; its requests are refused from then on.",
        "Deprecate an agent that another one replaces.",
        "The agent is deprecated.",
        "deprecated",
        allowed_from=("active", "suspended"),
        by_itself=True,
    ),
)


def lifecycle(change: LifecycleChange) -> Callable[[RoutedCall], Effects | Refused]:
    event = change.method.name

    @stateful
    def answer(call: RoutedCall) -> Effects:
        given, agent_id = call.input, call.input["agent_id"]
        if not ((change.by_itself and call.agent_id == agent_id) or call.principal.scopes.covers(MANAGE)):
            itself = "Only itself or a caller" if change.by_itself else "Only a caller"
            message = f"{itself} with the scope {MANAGE} may {event} an agent."
            declared = list(call.principal.scopes)
            details = {"missing_scopes": [MANAGE], "required_scopes": [MANAGE], "declared_scopes": declared}
            raise RefusedError(Refused(status.SCOPE_VIOLATION, "scope-violation", message, details))
        known = call.server.agents.get(agent_id)
        command = SetAgentStatus(
            agent_id=agent_id,
            event=event,
            allowed_from=change.allowed_from,
            status=change.status,
            actor=f"{given['actor']}, by {call.agent_id}" if "actor" in given else str(call.agent_id),
            reason=given.get("reason", ""),
            name=known.name if known is not None else None,
            assumed=known.status if known is not None else None,
        )

        def result(results: Sequence[Transition]) -> dict[str, Any]:
            done = results[0]
            told = {"agent_id": agent_id, "event_type": event, "previous_status": done.previous}
            return {**told, "status": done.status, "noop": done.noop}

        def impossible(found: Mapping[str, Any]) -> Refused:
            state = found["status"]
            message = f"{event} is not possible: the agent is {state}."
            message += " This is permanent." if state == RETIRED else ""
            return Refused(status.CONFLICT, "lifecycle-conflict", message, {"agent_status": state})

        unknown = f"No agent {agent_id} is registered with this server."
        unknown_agent = Refused(status.NOT_FOUND, "agent-not-found", unknown)
        return effects([command], result, {"agent-unknown": unknown_agent, "": impossible})

    return answer


MOST_CHECKPOINT: Final = 64 * 1024  # maximum bytes of a checkpoint
NOT_FOUND: Final = Refused(
    status.NOT_FOUND,
    "session-not-found",
    "This agent has no such session; a session begins with the first request that carries its Session-ID.",
)  # refusal for a session that does not exist or belongs to another agent
NO_SYNTHESIS: Final = Refused(
    status.NOT_FOUND, "synthesis-not-found", "This agent has no living synthesis with this id."
)


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
    handling.check_needs(call)
    session_id, latest = given["session_id"], time.time() + call.server.sessions.suspended
    # As requested, limited by the server's maximum.
    resume_by = min(read_future(given, "resume_by", most=math.inf) or latest, latest)
    checkpoint = _checkpoint(given)
    if not is_session_id(session_id):
        raise RefusedError(NOT_FOUND)
    nonce = secrets.token_urlsafe(16)
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
    already = Refused(status.CONFLICT, "session-suspended", "The session is already suspended.")
    return effects([command], lambda _: result, {"suspended": already, "expired": EXPIRED, "": NOT_FOUND})


def hash_nonce(nonce: str) -> str:
    return hashlib.sha256(nonce.encode()).hexdigest()


def _checkpoint(given: Mapping[str, Any]) -> str | None:
    if "checkpoint" not in given:
        return None
    checkpoint = handling.to_json(given["checkpoint"])
    handling.check_size("checkpoint", len(checkpoint.encode()), MOST_CHECKPOINT)
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
