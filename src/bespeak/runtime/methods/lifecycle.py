"""ACTIVATE, DEACTIVATE, REINSTATE, REVOKE, DEPRECATE: the lifecycle of an agent.

Core 12 names the methods and leaves their authorization open. Here an agent may suspend and deprecate itself, and
everything else requires the scope `agents:manage`. Anonymous callers may change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import ID_SCHEMA
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import effects, passed, stateful
from bespeak.state.store.commands.agents import RETIRED, SetAgentStatus, Transition

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
        passed(_refuse_change(call.principal, agent_id, change))
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


def _refuse_change(caller: Principal, agent_id: str, change: LifecycleChange) -> Refused | None:
    """Return a refusal if the caller may not do this to an agent; None if it may."""
    event = change.method.name
    if (change.by_itself and caller.agent_id == agent_id) or caller.scopes.covers(MANAGE):
        return None
    itself = "Only itself or a caller" if change.by_itself else "Only a caller"
    return Refused(
        status.SCOPE_VIOLATION,
        "scope-violation",
        f"{itself} with the scope {MANAGE} may {event} an agent.",
        {"missing_scopes": [MANAGE], "required_scopes": [MANAGE], "declared_scopes": list(caller.scopes)},
    )
