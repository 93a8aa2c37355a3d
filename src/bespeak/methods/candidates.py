"""What an agent may be looking for on this server: its endpoints and, where they are disclosed, its agents."""

from __future__ import annotations

from typing import Any

from bespeak.methods.relevance import Index
from bespeak.runtime.registry import Registry


class Candidates:
    """The endpoints an operator wrote and the public agents, ranked by what is sought."""

    def __init__(self, registry: Registry) -> None:
        endpoints = [endpoint for endpoint in registry.endpoints.values() if not endpoint.builtin]
        service = registry.service
        agents = service.agents if service.agent_disclosure == "public" else ()
        self._entries: list[dict[str, Any]] = [
            {"kind": "endpoint", "method": one.method, "path": one.path, "description": one.description}
            for one in endpoints
        ]
        self._entries += [{"kind": "agent", **agent.reference()} for agent in agents]
        texts = [f"{one} {one.description} {one.semantic.intent} {one.semantic.outcome}" for one in endpoints]
        self._index = Index([*texts, *(f"{agent.name} {agent.description}" for agent in agents)])

    def find(self, need: str, limit: int) -> list[dict[str, Any]]:
        """The best matches, each with its relevance."""
        ranked = self._index.rank(need)[:limit]
        return [{**self._entries[index], "relevance": score} for score, index in ranked]
