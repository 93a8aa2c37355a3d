"""/agents: which agents this server hosts, and who each of them is (core 3, 7.3), as far as that is disclosed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.trust import is_discoverable
from bespeak.protocol import status
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.answer import Answer
from bespeak.runtime.methods.floor import FloorMethod
from bespeak.runtime.methods.publication import Publication
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
"""Core 13, 10: the prefix is only taken for these two methods; operators have it for all others."""


def agents(publication: Publication) -> Callable[[Context], Answer | Refused]:
    """The handler of both paths."""

    def answer(context: Context) -> Answer | Refused:
        name = context.input.get("name")
        if name is not None:
            return show_agent(publication, context, publication.registry.agents.named(name), name)
        if publication.discloses(context.principal):
            return publication.namespace.answer(context.request)
        if publication.registry.service.agent_disclosure == "authenticated":
            # In open mode nobody is, whatever they send.
            message = "This server names its agents to callers that prove who they are."
            return authorization_required("credentials-missing", message)
        return Refused(status.FORBIDDEN, "agents-not-disclosed", "This server does not disclose its agents.")

    return answer


def show_agent(publication: Publication, context: Context, agent: Agent | None, wanted: str) -> Answer | Refused:
    """The identity document of an agent, if there is one that the caller may see; who may not learns nothing of it."""
    if agent is None or not may_see(publication, context.principal, agent) or agent.status in ("pending", "unreadable"):
        return Refused(status.NOT_FOUND, "agent-not-found", f"This server hosts no agent {wanted[:80]!r}.")
    refused = inactive(agent)
    if refused is not None:
        since = publication.registry.agents.changed_at(agent.agent_id)
        known = {} if since is None else {"since": write_instant(since)}
        return msgspec.structs.replace(refused, details={**refused.details, **known})
    return publication.identity_of(agent).answer(context.request)


def may_see(publication: Publication, caller: Principal, agent: Agent) -> bool:
    """Whether a caller may see an agent's document: its own if it has proven to be that agent, others as disclosed."""
    if caller.verified is not None and caller.agent_id == agent.agent_id:
        return True
    return publication.discloses(caller) and is_discoverable(agent.trust_tier)
