"""/agents: the agents this server hosts and their identity documents (core 3, 7.3), where disclosed."""

from __future__ import annotations

from typing import Final

from bespeak.contract.agent import Agent
from bespeak.contract.trust import is_discoverable
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.answer import Answer
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.floor import FloorMethod
from bespeak.runtime.principals import inactive

_METHODS: Final = ("DISCOVER", "DESCRIBE")

AGENT_METHODS: Final[tuple[tuple[str, FloorMethod], ...]] = (
    *(
        (
            "/agents",
            FloorMethod(
                name=name,
                description="Lists the agents this server hosts.",
                intent="Discover the agents of this server.",
                outcome="The Agent Namespace Document is returned.",
                parameters={},
            ),
        )
        for name in _METHODS
    ),
    *(
        (
            "/agents/{name}",
            FloorMethod(
                name=name,
                description="Returns the identity document of an agent by its name.",
                intent="Find out who an agent of this server is.",
                outcome="The identity document of the agent is returned.",
                parameters={"name": {"type": "string"}},
                required=("name",),
            ),
        )
        for name in _METHODS
    ),
)
"""Core 13, 10: the prefix is reserved for these two methods only; operators may use it with all others."""


def agents(call: RoutedCall) -> Answer | Refused:
    """Answer at both paths."""
    name = call.input.get("name")
    if name is not None:
        return show_agent(call, call.server.agents.named(name), name)
    if call.routes.publication.discloses(call.principal):
        return call.routes.publication.namespace.answer(call.request)
    if call.routes.service.agent_disclosure == "authenticated":
        why = "This server discloses its agents only to authenticated callers"
        if call.server.principals.authenticator is None:
            return authorization_required("credentials-missing", f"{why}, and its mode `open` authenticates nobody.")
        return call.server.principals.credentials_missing(why)
    return Refused(status.FORBIDDEN, "agents-not-disclosed", "This server does not disclose its agents.")


def show_agent(call: RoutedCall, agent: Agent | None, wanted: str) -> Answer | Refused:
    """Return the identity document of an agent that the caller may see; to others it does not exist."""
    if agent is None or not may_see(call, agent) or agent.status in ("pending", "unreadable"):
        return Refused(status.NOT_FOUND, "agent-not-found", f"This server hosts no agent {wanted[:80]!r}.")
    refused = inactive(agent, call.server.agents.changed_at(agent.agent_id))
    if refused is not None:
        return refused
    return call.routes.publication.identity_of(agent).answer(call.request)


def may_see(call: RoutedCall, agent: Agent) -> bool:
    """Return True if the caller may see an agent's document: its own once proven, others as disclosed."""
    caller = call.principal
    if caller.verified is not None and caller.agent_id == agent.agent_id:
        return True
    return call.routes.publication.discloses(caller) and is_discoverable(agent.trust_tier)
