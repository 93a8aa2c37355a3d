"""Local policy of alignments: thresholds, weights of the signals, and the resolution of conflicts (IoA 7.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from bespeak.extensions.semantics.alignment.values import ValueMapping
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
    values: ValueMapping | None = None  # how values of these properties are translated; None if they stay the same


class Unmapped(msgspec.Struct, frozen=True, kw_only=True, rename=_NAMES, omit_defaults=True):
    """A decision that a term of the source ontology has no counterpart."""

    source: str
    confirmed_by: str = ""  # person who has decided it, as the document claims


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact between two exact versions of ontologies."""

    source: OntologyRef
    target: OntologyRef
    rules: tuple[MappingRule, ...]
    unmapped: tuple[Unmapped, ...] = ()  # terms that have no counterpart, as a person has decided
    id: str = ""  # IRI of the artifact, as ioa:alignmentRef names it
    version: str = ""
    given_confidence: float | None = None  # confidence that the artifact gives for all of its rules
    provenance: Provenance | None = None
    signer: str = ""  # id of the key that signed it, once verified
    digest: str = ""  # SHA-256 of its canonical JSON, once registered
    confirmed_by: str = ""  # operator of this service who has confirmed it; never read from a document
    of_agent: bool = False  # True if an agent has registered it, not the operator

    @property
    def confidence(self) -> float:
        if self.given_confidence is not None:
            return self.given_confidence
        return min((rule.confidence for rule in self.rules if rule.confidence is not None), default=0.0)

    def trust(self, policy: Policy) -> int:
        """Return the trust in it: by the rank of its signer, 0 if the operator answers for it, -1 if an agent does."""
        if self.signer:
            return 1 + policy.ranks.get(self.signer, 0)
        return -1 if self.of_agent and not self.confirmed_by else 0

    def confidence_of(self, rule: MappingRule) -> float:
        return self.confidence if rule.confidence is None else rule.confidence


Band = Literal["accept", "policy", "ask", "reject"]
"""What a confidence means: accepted, accepted if policy allows it, a question for a person, or rejected."""

Criterion = Literal["policy", "confidence", "override"]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds and weights. The defaults are the ones measured on public benchmarks."""

    accept: float = 0.9  # confidence from which a mapping is accepted without further conditions
    threshold: float = 0.5  # confidence from which a mapping is accepted, marked as unconfirmed
    ask: float = 0.25  # confidence from which a person is asked; below it, a mapping is rejected
    unconfirmed: bool = True  # False if mappings below `accept` need a confirmation, too
    structure: float = 0.1
    behavior: float = 0.2
    history: float = 0.1
    order: tuple[Criterion, ...] = ("policy", "confidence", "override")  # to resolve several mappings (IoA 7.3)
    ranks: Mapping[str, int] = {}  # rank of signers by key id, 0 without an entry; it comes before `order`
    priorities: Mapping[str, int] = {}  # by author, tool, source, justification, or `override`; higher ones first

    def band(self, confidence: float) -> Band:
        if confidence >= self.accept:
            return "accept"
        if confidence >= self.threshold:
            return "policy"
        return "ask" if confidence >= self.ask else "reject"

    def accepts(self, band: Band) -> bool:
        """Return True if a mapping in a band may be used without asking."""
        return band == "accept" or (band == "policy" and self.unconfirmed)


DEFAULT: Final = Policy()

Pair = frozenset[str]  # ids of two ontologies, whichever is the source


class Lost(msgspec.Struct, frozen=True):
    """A mapping that was left out, and the one that stands in its way."""

    rule: MappingRule
    winner: MappingRule


class Resolution(msgspec.Struct, frozen=True):
    chosen: tuple[MappingRule, ...]  # mappings to use, sorted by source and target
    lost: tuple[Lost, ...]


def pair_of(alignment: Alignment) -> Pair:
    """Return the ontologies of an artifact, in any versions."""
    return frozenset((alignment.source.id, alignment.target.id))


def signed_pairs(alignments: Iterable[Alignment]) -> frozenset[Pair]:
    """Return the pairs of ontologies that have a signed artifact: unsigned ones do not count there (IoA 13)."""
    return frozenset(pair_of(one) for one in alignments if one.signer)


def resolve(
    rules: Iterable[MappingRule], policy: Policy = DEFAULT, trust: Mapping[int, int] | None = None
) -> Resolution:
    """Choose among mappings: in the policy's order, the first that finds its terms free wins. Ties go by IRI.

    Only mappings of equivalence exclude each other; a broader term may be the counterpart of several. `trust` comes
    first: that in the artifact of a rule, by `id(rule)`.
    """
    sources: dict[str, MappingRule] = {}
    targets: dict[str, MappingRule] = {}
    chosen: list[MappingRule] = []
    lost: list[Lost] = []
    for rule in sorted(rules, key=lambda rule: (-trust[id(rule)] if trust else 0, *_rank(rule, policy))):
        if rule.relation != "equivalent":
            chosen.append(rule)
            continue
        winner = sources.get(rule.source) or targets.get(rule.target)
        if winner is None:
            sources[rule.source] = targets[rule.target] = rule
            chosen.append(rule)
        elif (winner.source, winner.target) != (rule.source, rule.target):
            lost.append(Lost(rule, winner))
    return Resolution(tuple(sorted(chosen, key=lambda rule: (rule.source, rule.target, rule.relation))), tuple(lost))


def _rank(rule: MappingRule, policy: Policy) -> tuple[float | str | bool, ...]:
    priority, origin = 0, rule.provenance
    if policy.priorities:
        keys = {rule.justification or "", "override" if rule.override else ""}
        keys |= {origin.author, origin.tool, origin.source} if origin else set()
        priority = max((policy.priorities[key] for key in keys if key in policy.priorities), default=0)
    parts: dict[Criterion, tuple[float | str | bool, ...]] = {
        "policy": (-priority,),
        # Two scores may have the same confidence: the table has steps.
        "confidence": (-(rule.confidence or 0.0), -(rule.score or 0.0), -sum(rule.signals.values())),
        "override": (not rule.override,),
    }
    return (*(part for criterion in policy.order for part in parts[criterion]), rule.source, rule.target)
