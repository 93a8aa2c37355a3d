"""The semantic block: what an endpoint is for, so that an agent can judge it before calling (AGTP-API 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from bespeak.contract.ontology.namespace import is_iri
from bespeak.text.reading.setting import setting
from bespeak.text.reading.table import Table

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
    """What the endpoint is for: seven fields of AGTP-API 7.1, four of AGIS documents, and the concepts of IoA."""

    intent: str = setting("", "What the caller wants done, in one sentence.", required=True)
    actor: str = setting("", "Who should call.", required=True, suggested=("agent", "user", "system"))
    outcome: str = setting("", "What is true afterwards and can be verified, in one sentence.", required=True)
    capability: str = setting(
        "", "The category of the endpoint. Without it: the first category of the verb.", choices=CAPABILITIES
    )
    confidence: float = setting(
        0.0, "How sure the server is of the outcome, 0 to 1.", required=True, old="confidence_guidance"
    )
    impact: str = setting(
        "", "How far the consequences of a call go.", required=True, choices=IMPACTS, old="impact_tier"
    )
    is_idempotent: bool = setting(False, "True if calling twice does no more than calling once.", required=True)
    confidence_guidance: float | None = setting(
        None, "AGIS: how sure an agent should be before it acts alone, 0 to 1.", kind="number"
    )
    parameter_hints: Mapping[str, Any] = setting({}, "AGIS: phrases that people use for a parameter.", read=Table.json)
    state_transition: Mapping[str, str] = setting({}, "AGIS: what changes, each field with `FROM -> TO`.")
    mcp_tool_name: str | None = setting(None, "The name of the endpoint as an MCP tool.")
    concepts: tuple[str, ...] = setting(
        (),
        "Capabilities of domain ontologies that the endpoint provides, by their IRIs.",
        parse=lambda text: text if is_iri(text) else None,
        form="an absolute IRI",
        advice="Write it like https://ex.org/onto/cs#TechTranslation.",
    )

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
        if self.concepts:
            block["concepts"] = list(self.concepts)
        return block
