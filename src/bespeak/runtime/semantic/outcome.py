"""Outcome of a semantic negotiation: direct, mapped or none, with its reasons (IoA 7.1)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.verdict import ACCEPTED, Verdict
from bespeak.runtime.semantic.translation import UsedMapping

Match = Literal["direct", "mapped", "none"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a negotiation. Without a match, `verdict` says whether the profile may be renegotiated."""

    match: Match
    explanation: tuple[str, ...]
    """Sentences for people."""
    verdict: Verdict = ACCEPTED
    confidence: float = 0.0
    """1 for a direct match, else the lowest confidence of the mappings."""
    ontology: OntologyRef | None = None
    """Ontology of the service that the profile is understood with."""
    mappings: tuple[UsedMapping, ...] = ()
    profile: SemanticProfile | None = None
    """Profile in the vocabulary of the service."""

    def document(self) -> dict[str, Any]:
        """Return the outcome for a peer."""
        told: dict[str, Any] = {"match": self.match, "status": self.verdict.status, "confidence": self.confidence}
        if self.ontology is not None:
            told |= {"ontologyId": self.ontology.id, "ontologyVersion": self.ontology.version}
        if self.mappings:
            told["mappings"] = [one.document() for one in self.mappings]
        told["explanation"] = list(self.explanation)
        if self.verdict.violations:
            told["validation"] = {"status": self.verdict.status, "reason": self.verdict.reason}
            told["violations"] = [
                {"rule": one.rule, "path": one.path, "value": one.value, "message": one.message}
                for one in self.verdict.violations
            ]
        return told
