"""Outcome of a semantic negotiation: direct, mapped or none, with its reasons (IoA 7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.verdict import ACCEPTED, Verdict
from bespeak.runtime.semantic.translation import UsedMapping

Match = Literal["direct", "mapped", "unmatched", "none"]
"""What came of a profile. It is unmatched if its vocabulary is understood, but nothing says that the endpoint, or any
endpoint, provides its capabilities.
"""

WIDER: Final = 0.9
"""Certainty that a capability more general than the wanted one will do."""
_PLAIN: Final = "!#$%&'()*+,/:;=?@[]~"
"""Characters of an IRI that a header has as they are."""
_LONGEST: Final = 200
"""Characters of an id in a header; the digest names the artifact in any case."""
_MOST_ARTIFACTS: Final = 8
"""Most artifacts that an answer or a record names."""


def write_mapping(mapping: Mapping[str, Any]) -> str:
    """Write the value of the header Semantic-Mapping, a dictionary of RFC 9651."""
    artifacts = " ".join(
        f"{_text(one['id'])};version={_text(one['version'])};sha256={_text(one['sha256'])}"
        f";signed=?{one['signed']:d};confirmed=?{one['confirmed']:d}"
        for one in mapping["artifacts"]
    )
    return f"confidence={round(mapping['confidence'], 3)}, artifacts=({artifacts})"


def _text(value: str) -> str:
    """Write a string for a header: ASCII, with everything else percent-encoded as in a URI; a long one is cut."""
    return f'"{quote(value[:_LONGEST], safe=_PLAIN)}"'


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a negotiation. Without a match, `verdict` says whether the profile may be renegotiated."""

    match: Match
    explanation: tuple[str, ...]
    """Sentences for people."""
    verdict: Verdict = ACCEPTED
    confidence: float = 0.0
    """How sure the match is, 0 if nothing was matched. A direct match of all capabilities has 1."""
    ontology: OntologyRef | None = None
    """Ontology of the service that the profile is understood with."""
    mappings: tuple[UsedMapping, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Capabilities of the profile, in the vocabulary of the service, that nobody declares to provide."""
    profile: SemanticProfile | None = None
    """Profile in the vocabulary of the service."""

    @property
    def mapping(self) -> dict[str, Any] | None:
        """What a record says of a mapped call: its confidence, and the artifacts; None for any other."""
        steps = [step for used in self.mappings for step in used.translation.steps]
        if not steps:
            return None
        artifacts = {
            step.alignment: {
                "id": step.alignment,
                "version": step.version,
                "sha256": step.digest,
                "signed": step.trust > 0,
                "confirmed": step.confirmed,
            }
            for step in steps
        }
        lowest = min(used.translation.confidence for used in self.mappings)
        return {"confidence": round(lowest, 4), "artifacts": list(artifacts.values())[:_MOST_ARTIFACTS]}

    def document(self) -> dict[str, Any]:
        """Return the outcome for a peer."""
        told: dict[str, Any] = {
            "match": self.match,
            "status": self.verdict.status,
            "confidence": round(self.confidence, 4),
        }
        if self.ontology is not None:
            told |= {"ontologyId": self.ontology.id, "ontologyVersion": self.ontology.version}
        if self.unmatched:
            told["unmatched"] = list(self.unmatched)
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
