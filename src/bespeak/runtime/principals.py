"""From the identity headers of a request to its principal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from bespeak import status
from bespeak.contract.agent import Agent
from bespeak.exchange.principal import Principal, is_canonical_id
from bespeak.exchange.refusal import Refused
from bespeak.exchange.scope import NO_SCOPES, Scopes, parse_scopes

_GONE: Final = frozenset({"revoked", "retired", "deprecated"})
_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 512
"""Longer claims are read anew each time, so that strangers cannot fill the memory with them."""


class Principals:
    """The agents a server knows. The answer depends on the two headers alone, so recent ones are remembered."""

    def __init__(self, agents: Iterable[Agent], *, require_known: bool) -> None:
        self._agents = {agent.agent_id: agent for agent in agents}
        self._grants = {agent.agent_id: Scopes(agent.scopes) for agent in self._agents.values()}
        self._require_known = require_known
        self._recent = lru_cache(_REMEMBERED)(self._resolve)

    def resolve(self, agent_id: str | None, scope: str | None) -> Principal | Refused:
        """The principal behind Agent-ID and Authority-Scope, or why there is none."""
        if len(scope or "") + len(agent_id or "") > _LONGEST_REMEMBERED:
            return self._resolve(agent_id, scope)
        return self._recent(agent_id, scope)

    def agent(self, agent_id: str | None) -> Agent | None:
        """The document of an agent, if this server has it."""
        return self._agents.get(agent_id) if agent_id else None

    def _resolve(self, agent_id: str | None, scope: str | None) -> Principal | Refused:
        claimed = parse_scopes(scope) if scope else NO_SCOPES
        if isinstance(claimed, str):
            return Refused(
                status.BAD_REQUEST,
                "invalid-authority-scope",
                f"Authority-Scope holds {claimed[:80]!r}, which is no scope; write tokens like booking:room, "
                "in lower case, separated by commas.",
            )
        if agent_id is None:
            return Principal(scopes=claimed)
        if not is_canonical_id(agent_id):
            return Refused(
                status.BAD_REQUEST,
                "invalid-canonical-id",
                f"Agent-ID is 64 lower-case hexadecimal digits, not {agent_id[:80]!r}.",
            )
        agent = self._agents.get(agent_id)
        if agent is None:
            if self._require_known:
                return Refused(
                    status.UNAUTHORIZED, "agent-unknown", f"No agent {agent_id} is registered with this server."
                )
            return Principal(agent_id=agent_id, scopes=claimed)
        state = agent.status.lower()
        if state == "suspended":
            return Refused(
                status.UNAVAILABLE, "agent-suspended", "The agent is suspended.", {"agent_status": agent.status}
            )
        if state in _GONE:
            return Refused(
                status.GONE,
                "agent-revoked",
                f"The agent is {state}; its id will not be used again.",
                {"agent_status": agent.status},
            )
        if state != "active":
            # Core 7.1: an id without an active record is rejected.
            return Refused(
                status.UNAUTHORIZED,
                "agent-not-active",
                f"The agent is {state[:40]!r}, not active.",
                {"agent_status": agent.status},
            )
        granted = self._grants[agent_id]
        wider = granted.missing(claimed)
        if wider:
            return Refused(
                status.AUTHORIZATION_REQUIRED,
                "scope-claim-invalid",
                f"Authority-Scope claims {', '.join(wider)}, which the agent's document does not grant.",
                {"type": "scope-required", "claimed": list(claimed), "invalid": wider, "declared": list(granted)},
            )
        return Principal(
            agent_id=agent_id,
            scopes=granted if scope is None else claimed,
            wildcards=agent.wildcards,
            known=True,
        )
