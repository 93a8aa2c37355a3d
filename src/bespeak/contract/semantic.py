"""The semantic block: what an endpoint is for, so that an agent can judge it before calling (AGTP-API 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

Capability = Literal[
    "discovery",
    "retrieval",
    "analysis",
    "transaction",
    "modification",
    "creation",
    "notification",
    "mechanics",
    "domain_spanning",
]
Impact = Literal["informational", "reversible", "irreversible"]

CAPABILITIES: Final[tuple[str, ...]] = get_args(Capability)
IMPACTS: Final[tuple[str, ...]] = get_args(Impact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """Seven required fields of AGTP-API 7.1, and four that only AGIS documents carry."""

    intent: str
    actor: str
    outcome: str
    capability: str
    """One of CAPABILITIES; empty to inherit the category of the method at registration (AGTP-API 7.1)."""
    confidence: float
    """How sure the server is of the outcome. Not AGIS's `confidence_guidance`."""
    impact: str
    is_idempotent: bool

    confidence_guidance: float | None = None
    """AGIS: how sure the agent should be before acting alone."""
    parameter_hints: Mapping[str, Any] = field(default_factory=dict)
    state_transition: Mapping[str, str] = field(default_factory=dict)
    """AGIS: what changes, each field with `FROM -> TO`."""
    mcp_tool_name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the block of a manifest; AGIS-only fields appear if they are set."""
        block: dict[str, Any] = {
            "intent": self.intent,
            "actor": self.actor,
            "outcome": self.outcome,
            "capability": self.capability,
            "confidence": self.confidence,
            "impact": self.impact,
            "is_idempotent": self.is_idempotent,
        }
        if self.confidence_guidance is not None:
            block["confidence_guidance"] = self.confidence_guidance
        if self.parameter_hints:
            block["parameter_hints"] = dict(self.parameter_hints)
        if self.state_transition:
            block["state_transition"] = dict(self.state_transition)
        if self.mcp_tool_name is not None:
            block["mcp_tool_name"] = self.mcp_tool_name
        return block
