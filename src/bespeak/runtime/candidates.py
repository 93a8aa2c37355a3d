"""Search over the endpoints of this server and, where they are disclosed, its agents."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.candidate_filter import CandidateFilter

NO_FILTER: Final = CandidateFilter()


class Candidates:
    """The operator's endpoints and the hosted agents, ranked by relevance."""

    def __init__(self, endpoints: Iterable[Endpoint], agents: Iterable[Agent], operator: str = "") -> None:
        self._operator = operator
        written = [endpoint for endpoint in endpoints if endpoint.is_listed]
        # Core 7.4: experimental and inactive agents are not listed.
        hosted = [agent for agent in agents if agent.is_discoverable]
        self._entries: list[dict[str, Any]] = [
            {"kind": "endpoint", "method": one.method, "path": one.path, "description": one.description}
            for one in written
        ]
        self._entries += [{"kind": "agent", **agent.reference(), "principal": agent.principal} for agent in hosted]
        # Most servers are never asked, and English takes long to load.
        from bespeak.contract.endpoint_index import EndpointIndex  # noqa: PLC0415

        self._index = EndpointIndex(written, others=[f"{agent.name} {agent.description}" for agent in hosted])
        self._subjects: list[Endpoint | Agent] = [*written, *hosted]

    def find(self, need: str, limit: int, *, agents: bool, wanted: CandidateFilter = NO_FILTER) -> list[dict[str, Any]]:
        """Return the best matches, each with its relevance; agents only if the caller may see them."""
        ranked = (
            (score, index)
            for score, index in self._index.rank(need)
            if self._admits(self._subjects[index], wanted, agents=agents)
        )
        return [{**self._entries[index], "relevance": score} for score, index in islice(ranked, limit)]

    def _admits(self, subject: Endpoint | Agent, wanted: CandidateFilter, *, agents: bool) -> bool:
        if isinstance(subject, Agent):
            return agents and wanted.admits_agent(subject)
        return wanted.admits_endpoint(subject, self._operator)
