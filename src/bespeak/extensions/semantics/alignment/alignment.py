"""An alignment between two ontologies: mapping rules with their reasons (IoA 7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from bespeak.extensions.semantics.terms import OntologyRef

Relation = Literal["equivalent", "broader", "narrower", "related"]
"""How the target stands to the source: a broader target means more than the source does."""

Justification = Literal["lexical", "structural", "behavioral", "embedding", "composite", "manual", "review"]
"""Why a rule holds; `manual` is a decision of a person, such as an override."""
INVERSE: Mapping[Relation, Relation] = {
    "equivalent": "equivalent",
    "related": "related",
    "broader": "narrower",
    "narrower": "broader",
}


class Provenance(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where a mapping comes from: needed for mappings that critical tasks use (IoA 13)."""

    author: str = ""  # person or agent that made or confirmed the mapping
    tool: str = ""
    tool_version: str = ""
    source: str = ""  # document or address that it was read from
    created: str = ""  # time in RFC 3339 form


_NAMES = {"source": "from", "target": "to", "confirmed_by": "confirmedBy"}  # in an artifact


class MappingRule(msgspec.Struct, frozen=True, kw_only=True, rename=_NAMES, omit_defaults=True):
    source: str  # IRI of a term of the source ontology
    target: str  # IRI of a term of the target ontology
    relation: Relation = "equivalent"
    confidence: float | None = None  # confidence from 0 to 1, or None if the artifact gives only one for all
    score: float | None = None  # score of the aligner before calibration
    justification: Justification | None = None
    signals: Mapping[str, float] = {}  # parts of the score by name
    override: bool = False  # True if the document claims a decision of a user (IoA 7.3); counts once confirmed
    confirmed_by: str = ""  # person who has confirmed the rule, as the document claims
    provenance: Provenance | None = None


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact between two exact versions of ontologies."""

    source: OntologyRef
    target: OntologyRef
    rules: tuple[MappingRule, ...]
    id: str = ""  # IRI of the artifact, as ioa:alignmentRef names it
    version: str = ""
    given_confidence: float | None = None  # confidence that the artifact gives for all of its rules
    provenance: Provenance | None = None
    signer: str = ""  # id of the key that signed it, once verified
    digest: str = ""  # SHA-256 of its canonical JSON, once registered
    confirmed_by: str = ""  # operator of this service who has confirmed it; never read from a document

    @property
    def confidence(self) -> float:
        """Confidence of the artifact: the given one, else the lowest of its rules."""
        if self.given_confidence is not None:
            return self.given_confidence
        return min((rule.confidence for rule in self.rules if rule.confidence is not None), default=0.0)

    def confidence_of(self, rule: MappingRule) -> float:
        """Return the confidence of a rule: its own, else that of the artifact."""
        return self.confidence if rule.confidence is None else rule.confidence
