"""Translation of terms and whole profiles through accepted alignments (IoA 7.1)."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from bespeak.extensions.semantics.alignment.policy import (
    DEFAULT,
    INVERSE,
    Alignment,
    MappingRule,
    Pair,
    Policy,
    Relation,
    pair_of,
    resolve,
    signed_pairs,
)
from bespeak.extensions.semantics.alignment.values import ValueMapping
from bespeak.extensions.semantics.profile import SemanticProfile, Violation
from bespeak.extensions.semantics.rules import LOW_CONFIDENCE, UNCOVERED
from bespeak.extensions.semantics.terms import Ontology, OntologyRef

_MOST_STEPS: Final = 3
_MOST_VISITS: Final = 10_000
_CHAIN: Final[Mapping[tuple[Relation, Relation], Relation]] = {
    ("equivalent", "equivalent"): "equivalent",
    **dict.fromkeys((("equivalent", "broader"), ("broader", "equivalent"), ("broader", "broader")), "broader"),
    **dict.fromkeys((("equivalent", "narrower"), ("narrower", "equivalent"), ("narrower", "narrower")), "narrower"),
}
"""Relation of two mappings one after the other; other pairs say nothing."""
_WORDS: Final[Mapping[Relation, str]] = {
    "equivalent": "means",
    "broader": "is narrower than",
    "narrower": "is broader than",
    "related": "is related to",
}


class TranslationStep(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    ontology: OntologyRef  # ontology of the target
    relation: Relation
    confidence: float
    alignment: str  # id of the artifact, or its two ontologies
    version: str = ""  # version of the artifact
    digest: str = ""  # SHA-256 of the artifact
    trust: int = 0  # trust in the artifact: above 0 if it is signed, below if an agent has registered it unconfirmed
    confirmed: bool = False  # True if the operator has confirmed the artifact
    inverted: bool
    override: bool
    values: ValueMapping | None = None  # how values of properties are translated


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    iri: str
    ontology: OntologyRef
    relation: Relation
    confidence: float  # product of the confidences of all steps
    steps: tuple[TranslationStep, ...]

    @property
    def trust(self) -> int:
        """Trust in the least trusted artifact on the way."""
        return min(step.trust for step in self.steps)

    @property
    def unconfirmed(self) -> str | None:
        """Id of the first artifact on the way that the operator has not confirmed; None if all are."""
        return next((step.alignment for step in self.steps if not step.confirmed), None)

    def explain(self) -> str:
        return "; ".join(_describe(step) for step in self.steps)


class Translator:
    """Mappings of accepted alignments, resolved once: a translation of one step is a lookup."""

    def __init__(
        self, alignments: Iterable[Alignment], policy: Policy = DEFAULT, *, signed: Set[Pair] | None = None
    ) -> None:
        """Index the alignments; `signed` are the pairs of ontologies that need signed ones, None for those of these."""
        given = tuple(alignments)
        self._signed = signed_pairs(given) if signed is None else signed
        self._steps: dict[tuple[str, str], list[TranslationStep]] = {}
        pairs: dict[Pair, list[tuple[MappingRule, Alignment]]] = {}
        for alignment in given:
            pair = pair_of(alignment)
            if alignment.signer or pair not in self._signed:
                pairs.setdefault(pair, []).extend((_turned(rule, alignment), alignment) for rule in alignment.rules)
        for _, rules in sorted(pairs.items(), key=lambda one: sorted(one[0])):
            # Several artifacts for the same ontologies may disagree, in either direction.
            owners = {id(rule): alignment for rule, alignment in rules}
            trust = {id(rule): alignment.trust(policy) for rule, alignment in rules}
            for rule in resolve((rule for rule, _ in rules), policy, trust).chosen:
                self._add(rule, owners[id(rule)], trust[id(rule)])

    def _add(self, rule: MappingRule, alignment: Alignment, trust: int) -> None:
        ends = (alignment.source, alignment.target)
        source, target = reversed(ends) if _is_turned(alignment) else ends
        for backwards, here, there in ((False, source, target), (True, target, source)):
            step = TranslationStep(
                source=rule.target if backwards else rule.source,
                target=rule.source if backwards else rule.target,
                ontology=there,
                relation=INVERSE[rule.relation] if backwards else rule.relation,
                confidence=rule.confidence or 0.0,
                alignment=alignment.id or f"{alignment.source} to {alignment.target}",
                version=alignment.version,
                digest=alignment.digest,
                trust=trust,
                confirmed=bool(alignment.confirmed_by),
                inverted=backwards != _is_turned(alignment),
                override=rule.override,
                values=rule.values,
            )
            self._steps.setdefault((step.source, here.id), []).append(step)

    def translate(
        self, iri: str, source: str, target: str, *, relations: tuple[Relation, ...] = ("equivalent",)
    ) -> Translation | None:
        """Translate a term of one ontology into another: the most trusted way of at most three steps, then the surest.

        A mapping counts only for the ontology that its artifact names: another one may declare the same IRI. Where a
        signed artifact is for both ontologies, no unsigned one is on the way either.
        """
        only_signed = frozenset((source, target)) in self._signed
        waiting: list[tuple[int, float, int, str, int]] = [(-sys.maxsize, -1.0, 0, iri, 0)]
        ways: list[tuple[TranslationStep, ...]] = [()]
        best: dict[tuple[str, str, Relation, int], tuple[int, float]] = {}
        while waiting and len(ways) < _MOST_VISITS:
            doubt, negative, length, here, number = heapq.heappop(waiting)
            steps = ways[number]
            relation = _chain(steps)
            if steps and relation in relations and steps[-1].ontology.id == target:
                ref = steps[-1].ontology
                return Translation(iri=here, ontology=ref, relation=relation, confidence=-negative, steps=steps)
            place = steps[-1].ontology.id if steps else source
            for step in self._steps.get((here, place), ()) if length < _MOST_STEPS else ():
                joined = _chain((*steps, step))
                if joined is None or (only_signed and step.trust <= 0):
                    continue
                key = (step.target, step.ontology.id, joined, length + 1)
                cost = (max(doubt, -step.trust), negative * step.confidence)
                if cost < best.get(key, (1, 1.0)):
                    best[key] = cost
                    heapq.heappush(waiting, (*cost, length + 1, step.target, len(ways)))
                    ways.append((*steps, step))
        return None


def _is_turned(alignment: Alignment) -> bool:
    """Return True if the rules of an artifact are read backwards, so that all of a pair have one direction."""
    return alignment.target.id < alignment.source.id


def _turned(rule: MappingRule, alignment: Alignment) -> MappingRule:
    found = msgspec.structs.replace(rule, confidence=alignment.confidence_of(rule))
    if not _is_turned(alignment):
        return found
    return msgspec.structs.replace(found, source=rule.target, target=rule.source, relation=INVERSE[rule.relation])


def _describe(step: TranslationStep) -> str:
    decided = ", decided by a user" if step.override else ""
    inverted = ", inverted" if step.inverted else ""
    reasons = f"confidence {step.confidence:.2f}{decided}; {step.alignment}{inverted}"
    return f"{step.source} {_WORDS[step.relation]} {step.target} ({reasons})"


def _chain(steps: tuple[TranslationStep, ...]) -> Relation | None:
    """Return the relation of the first term to the last one; None if the mappings together say nothing."""
    if len(steps) == 1:
        return steps[0].relation
    found: Relation | None = "equivalent"
    for step in steps:
        found = _CHAIN.get((found, step.relation)) if found else None
    return found


# Relations that may stand for a term, the better one first. What provides a capability must do all that is wanted, so
# it may be more special; a domain or a sense may be more general.
_DOWNWARDS: Final[tuple[Relation, ...]] = ("equivalent", "narrower")
_UPWARDS: Final[tuple[Relation, ...]] = ("equivalent", "broader")
_MOST_TRANSLATORS: Final = 16  # translators with a part of the alignments that are kept


class UsedMapping(msgspec.Struct, frozen=True):
    source: str
    translation: Translation

    def document(self) -> dict[str, Any]:
        """Return what a peer may know of it."""
        steps = [step.alignment for step in self.translation.steps]
        return {
            "from": self.source,
            "to": self.translation.iri,
            "relation": self.translation.relation,
            "confidence": round(self.translation.confidence, 4),
            "alignmentRef": steps[0] if len(steps) == 1 else steps,
        }


class Mappings:
    """Accepted mappings of some alignments: certain enough, or confirmed by the operator (IoA 7.4)."""

    def __init__(self, alignments: Iterable[Alignment], policy: Policy) -> None:
        given = tuple(alignments)
        self._policy = policy
        self._signed = signed_pairs(given)
        self._accepted: dict[str, Alignment] = {}
        self.doubtful: dict[str, float] = {}  # highest confidence of a term's mappings that are not accepted
        self._anonymous: set[tuple[str, str, str]] = set()  # alignment, source and target of unknown origin
        for alignment in given:
            rules = []
            for rule in alignment.rules:
                confidence = alignment.confidence_of(rule)
                if alignment.confirmed_by or confidence >= policy.threshold:
                    if (rule.override or rule.confirmed_by) and not alignment.confirmed_by:
                        # Decisions that its document claims are those of a person unknown here.
                        rules.append(msgspec.structs.replace(rule, override=False, confirmed_by=""))
                    else:
                        rules.append(rule)
                    origin = rule.provenance or alignment.provenance
                    if origin is None or not (origin.author or origin.tool):
                        self._anonymous.add((alignment.id, rule.source, rule.target))
                else:
                    for iri in (rule.source, rule.target):
                        self.doubtful[iri] = max(confidence, self.doubtful.get(iri, 0.0))
            self._accepted[alignment.id] = msgspec.structs.replace(alignment, rules=tuple(rules))
        self._all = tuple(self._accepted)
        self._translators = {self._all: Translator(self._accepted.values(), policy, signed=self._signed)}

    def translator(self, ids: Sequence[str]) -> Translator:
        key = tuple(ids)
        if key not in self._translators:
            if len(self._translators) >= _MOST_TRANSLATORS:
                self._translators.pop(next(one for one in self._translators if one != self._all))
            self._translators[key] = Translator([self._accepted[id_] for id_ in key], self._policy, signed=self._signed)
        return self._translators[key]

    def translate(
        self,
        iri: str,
        sources: Iterable[str],
        target: str,
        ids: Sequence[str],
        relations: tuple[Relation, ...] = _DOWNWARDS,
    ) -> Translation | None:
        """Translate a term that some ontologies declare, with some of the alignments.

        The most trusted way comes first, then what means the same, then the surest way.
        """
        translator = self.translator(ids)
        ways = (
            (number, found)
            for source in sources
            for number, relation in enumerate(relations)
            if (found := translator.translate(iri, source, target, relations=(relation,))) is not None
        )
        return min(ways, key=lambda way: (-way[1].trust, way[0], -way[1].confidence), default=(0, None))[1]

    def refuses(self, translation: Translation) -> bool:
        """Return True if several steps together are not certain enough."""
        return len(translation.steps) > 1 and translation.confidence < self._policy.threshold

    def is_anonymous(self, translation: Translation) -> bool:
        """Return True if any mapping does not say who or what made it."""
        for step in translation.steps:
            source, target = (step.target, step.source) if step.inverted else (step.source, step.target)
            if (step.alignment, source, target) in self._anonymous:
                return True
        return False


class ProfileTranslation:
    def __init__(
        self, mappings: Mappings, ids: Sequence[str], target: Ontology, declaring: Callable[[str], Sequence[str]]
    ) -> None:
        """Translate with some of the alignments; `declaring` returns the ids of the ontologies that declare a term."""
        self.used: dict[str, UsedMapping] = {}  # mappings that were used, by source
        self.broken: list[Violation] = []  # what could not be translated
        self._mappings = mappings
        self._ids = ids
        self._target = target
        self._declaring = declaring
        self._source = ""

    def translate(self, profile: SemanticProfile) -> SemanticProfile:
        self._source = profile.ontology_id
        context = profile.context
        if context is not None:
            at = "/profileContext/termBindings"
            context = msgspec.structs.replace(
                context,
                domain=None
                if context.domain is None
                else self._term(context.domain, "/profileContext/domain", _UPWARDS),
                term_bindings=tuple(
                    msgspec.structs.replace(one, sense=self._term(one.sense, f"{at}/{number}/sense", _UPWARDS))
                    for number, one in enumerate(context.term_bindings)
                ),
            )
        return msgspec.structs.replace(
            profile,
            ontology_id=self._target.id,
            ontology_version=self._target.version,
            capability_refs=tuple(
                self._term(one, f"/capabilityRefs/{number}") for number, one in enumerate(profile.capability_refs)
            ),
            intent_ref=self._term(profile.intent_ref, "/intentRef") if profile.intent_ref else "",
            context=context,
        )

    def _term(self, iri: str, path: str, relations: tuple[Relation, ...] = _DOWNWARDS) -> str:
        if iri in self._target.terms:
            return iri
        # A term is one of the profile's own ontology, whoever else declares it too.
        declaring = self._declaring(iri)
        sources = [self._source] if self._source in declaring or not declaring else declaring
        found = self._mappings.translate(iri, sources, self._target.id, self._ids, relations)
        covered = found is not None and found.iri in self._target.terms
        if found is None or not covered or self._mappings.refuses(found):
            doubtful = found.confidence if found is not None and covered else self._mappings.doubtful.get(iri)
            rule, other = (UNCOVERED, self._target.id) if doubtful is None else (LOW_CONFIDENCE, doubtful)
            self.broken.append(Violation.of(rule, path, iri, other))
            return iri
        self.used[iri] = UsedMapping(iri, found)
        return found.iri
