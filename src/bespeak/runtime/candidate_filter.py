"""The constraints of DISCOVER: what a caller asks for, and the governance zones it is permitted (core 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.agent import DEFAULT_ZONE, Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.trust import ORG_ASSERTED
from bespeak.protocol.exchange.scope import Scopes

_TEXTS: Final[Mapping[str, Any]] = {
    "type": ["string", "array"],
    "items": {"type": "string", "minLength": 1},
    "minLength": 1,
    "maxItems": 50,
}
FILTER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "capabilities": _TEXTS,
        "scopes": _TEXTS,
        "tier": {"type": "integer", "minimum": 1, "maximum": 3},
        "geography": _TEXTS,
        "principal": {"type": "string", "minLength": 1},
    },
    "additionalProperties": False,
}
"""Schema of `filter`. Each member is a constraint; what cannot be shown to meet all of them is left out."""


class CandidateFilter(msgspec.Struct, frozen=True):
    """What the candidates must meet."""

    zone: str = DEFAULT_ZONE
    """Governance zone of the caller. Agents of other zones are not found; those of the default zone always are."""
    capabilities: frozenset[str] = frozenset()
    """An endpoint has one of them, an agent all."""
    scopes: tuple[str, ...] = ()
    """An endpoint requires no others, an agent accepts all."""
    tier: int | None = None
    """Lowest trust: a lower number is stronger (core 7.4)."""
    geography: frozenset[str] = frozenset()
    principal: str | None = None

    def admits_endpoint(self, endpoint: Endpoint, operator: str) -> bool:
        """Return True if an endpoint of an operator meets the constraints; it has no tier and no geography."""
        return (
            self.tier is None
            and not self.geography
            and (not self.capabilities or endpoint.semantic.capability.casefold() in self.capabilities)
            and (not self.scopes or not Scopes(self.scopes).missing(list(endpoint.required_scopes)))
            and (self.principal is None or operator.casefold() == self.principal)
        )

    def admits_agent(self, agent: Agent) -> bool:
        """Return True if an agent meets the constraints and is in a zone that the caller is permitted."""
        said = agent.document
        return (
            agent.governance_zone in (DEFAULT_ZONE, self.zone)
            and self.capabilities <= {*_texts(said.get("capabilities")), *_texts(said.get("skills"))}
            and (not self.scopes or not Scopes(agent.scopes).missing(list(self.scopes)))
            and (self.tier is None or (agent.trust_tier or ORG_ASSERTED) <= self.tier)
            and (not self.geography or not self.geography.isdisjoint(_texts(said.get("geography"))))
            and (
                self.principal is None
                or self.principal in (agent.principal.casefold(), (agent.principal_id or "").casefold())
            )
        )


def read_filter(given: Mapping[str, Any], caller: Agent | None) -> CandidateFilter:
    """Read a valid `filter` of a caller; the caller is None if this server has no document of it."""
    principal = given.get("principal")
    return CandidateFilter(
        zone=DEFAULT_ZONE if caller is None else caller.governance_zone,
        capabilities=frozenset(_texts(given.get("capabilities"))),
        scopes=tuple(_texts(given.get("scopes"))),
        tier=given.get("tier"),
        geography=frozenset(_texts(given.get("geography"))),
        principal=None if principal is None else principal.casefold(),
    )


def _texts(value: object) -> Iterable[str]:
    """Return the texts of a list or of a comma-separated text, for comparison."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    return [part.strip().casefold() for part in parts if isinstance(part, str)]
