"""The parties behind a call: who may not decide what the call asks for."""

from __future__ import annotations

from collections.abc import Iterator

from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call
from bespeak.state.identity.key_mark import ed25519_mark


def parties_of(call: Call) -> tuple[str, ...]:
    """Return everyone behind a call: ids, names, principals and keys of the caller and of its delegators.

    The operator is left out: agents that it runs itself may decide about each other.
    """
    principal, agents = call.principal, call.server.agents
    found = {text.casefold() for text in _of_principal(principal)}
    for agent_id in (principal.agent_id, *principal.delegators):
        agent = agents.get(agent_id)
        if agent is not None:
            found |= _of_agent(agent)
    found.discard(call.routes.service.identity.operator.casefold())
    return tuple(sorted(found))


def deciding_parties(call: Call) -> tuple[str, ...]:
    """Return everyone behind a decision: the parties of the call, and the agents that share a name or a key with one.

    A case has the parties of its time; agents that have come to share a key since then are found here.
    """
    own = set(parties_of(call))
    sharing = {agent.agent_id for agent in call.server.agents if not own.isdisjoint(_of_agent(agent))}
    return tuple(sorted(own | sharing))


def _of_principal(principal: Principal) -> Iterator[str]:
    yield from filter(None, (principal.agent_id, *principal.delegators, principal.principal_id))
    yield from principal.holders


def _of_agent(agent: Agent) -> set[str]:
    names = (agent.agent_id, agent.name, agent.label, agent.principal, agent.principal_id, agent.owner_id)
    found = {name.casefold() for name in names if name}
    raw = decode64(agent.public_key["x"]) if agent.public_key is not None else None
    if raw is not None:
        found.add(ed25519_mark(raw))
    return found
