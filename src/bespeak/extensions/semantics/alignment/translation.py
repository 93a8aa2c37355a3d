"""Translation of terms through accepted alignments, with the product of their confidences (IoA 7.1)."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Final

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
from bespeak.extensions.semantics.terms import OntologyRef

_MOST_STEPS: Final = 3
_MOST_VISITS: Final = 10_000
_MOST_TRUST: Final = sys.maxsize
_WORST: Final = (1, 1.0)
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
    trust: int = 0  # trust in the artifact: 0 if it is unsigned, else one more than the rank of its signer
    confirmed: bool = False  # True if the operator has confirmed the artifact
    inverted: bool
    override: bool


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    iri: str
    ontology: OntologyRef
    relation: Relation
    confidence: float  # product of the confidences of all steps
    steps: tuple[TranslationStep, ...]

    @property
    def trust(self) -> int:
        """Trust in the least trusted artifact on the way; 0 if one is unsigned."""
        return min(step.trust for step in self.steps)

    @property
    def unconfirmed(self) -> str | None:
        """Id of the first artifact on the way that the operator has not confirmed; None if all are."""
        return next((step.alignment for step in self.steps if not step.confirmed), None)

    def explain(self) -> str:
        """Return the way from the term to its translation in words."""
        return "; ".join(_describe(step) for step in self.steps)


class Translator:
    """Mappings of accepted alignments, resolved once: a translation of one step is a lookup."""

    def __init__(
        self,
        alignments: Iterable[Alignment],
        policy: Policy = DEFAULT,
        *,
        least: float = 0.0,
        signed: Set[Pair] | None = None,
    ) -> None:
        """Index the alignments. `least` is the lowest confidence of a translation.

        `signed` are the pairs of ontologies that need signed artifacts; None for those of these alignments.
        """
        self._least = least
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
            ranks = {one.signer: 1 + policy.ranks.get(one.signer, 0) if one.signer else 0 for _, one in rules}
            trust = {id(rule): ranks[alignment.signer] for rule, alignment in rules}
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
        waiting: list[tuple[int, float, int, str, int]] = [(-_MOST_TRUST, -1.0, 0, iri, 0)]
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
                confidence = -negative * step.confidence
                joined = _chain((*steps, step))
                if joined is None or confidence < self._least or (only_signed and not step.trust):
                    continue
                key = (step.target, step.ontology.id, joined, length + 1)
                cost = (max(doubt, -step.trust), -confidence)
                if cost < best.get(key, _WORST):
                    best[key] = cost
                    heapq.heappush(waiting, (*cost, length + 1, step.target, len(ways)))
                    ways.append((*steps, step))
        return None


def _is_turned(alignment: Alignment) -> bool:
    """Return True if the rules of an artifact are read backwards, so that all of a pair have one direction."""
    return alignment.target.id < alignment.source.id


def _turned(rule: MappingRule, alignment: Alignment) -> MappingRule:
    """Return a rule with its confidence, in the direction of its pair."""
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
