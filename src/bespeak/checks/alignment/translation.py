"""Translation of terms through accepted alignments, with the product of their confidences (IoA 7.1)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT, resolve
from bespeak.contract.ontology.alignment import INVERSE, Alignment, MappingRule, Relation
from bespeak.contract.ontology.ontology import OntologyRef

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
    """One mapping on the way."""

    source: str
    target: str
    ontology: OntologyRef
    """Ontology of the target."""
    relation: Relation
    confidence: float
    alignment: str
    """Id of the artifact, or its two ontologies."""
    inverted: bool
    override: bool


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """A term in another ontology."""

    iri: str
    ontology: OntologyRef
    relation: Relation
    confidence: float
    """Product of the confidences of all steps."""
    steps: tuple[TranslationStep, ...]

    def explain(self) -> str:
        """Return the way from the term to its translation in words."""
        return "; ".join(_describe(step) for step in self.steps)


class Translator:
    """Mappings of accepted alignments, resolved once: a translation of one step is a lookup."""

    def __init__(self, alignments: Iterable[Alignment], policy: Policy = DEFAULT, *, least: float = 0.0) -> None:
        """Index the alignments. `least` is the lowest confidence of a translation."""
        self._least = least
        self._steps: dict[str, list[TranslationStep]] = {}
        sides: dict[tuple[OntologyRef, OntologyRef], list[tuple[MappingRule, Alignment]]] = {}
        for alignment in alignments:
            rules = sides.setdefault((alignment.source, alignment.target), [])
            rules += ((_with_confidence(rule, alignment), alignment) for rule in alignment.rules)
        for (source, target), rules in sorted(sides.items()):
            # Several artifacts for the same ontologies may disagree.
            owners = {id(rule): alignment for rule, alignment in rules}
            for rule in resolve((rule for rule, _ in rules), policy).chosen:
                name = owners[id(rule)].id or f"{source} to {target}"
                for inverted, ref in ((False, target), (True, source)):
                    step = _step(rule, ref, name, inverted=inverted)
                    self._steps.setdefault(step.source, []).append(step)

    def translate(
        self, iri: str, ontology: str, *, relations: tuple[Relation, ...] = ("equivalent",)
    ) -> Translation | None:
        """Translate a term into an ontology by its id: the surest way of at most three steps, or None."""
        waiting: list[tuple[float, int, str, int]] = [(-1.0, 0, iri, 0)]
        ways: list[tuple[TranslationStep, ...]] = [()]
        best: dict[tuple[str, Relation, int], float] = {}
        while waiting and len(ways) < _MOST_VISITS:
            negative, length, here, number = heapq.heappop(waiting)
            steps = ways[number]
            relation = _chain(steps)
            if steps and relation in relations and steps[-1].ontology.id == ontology:
                ref = steps[-1].ontology
                return Translation(iri=here, ontology=ref, relation=relation, confidence=-negative, steps=steps)
            for step in self._steps.get(here, ()) if length < _MOST_STEPS else ():
                confidence = -negative * step.confidence
                joined = _chain((*steps, step))
                if joined is None or confidence < self._least:
                    continue
                key = (step.target, joined, length + 1)
                if confidence > best.get(key, -1.0):
                    best[key] = confidence
                    heapq.heappush(waiting, (-confidence, length + 1, step.target, len(ways)))
                    ways.append((*steps, step))
        return None


def _step(rule: MappingRule, ontology: OntologyRef, name: str, *, inverted: bool) -> TranslationStep:
    return TranslationStep(
        source=rule.target if inverted else rule.source,
        target=rule.source if inverted else rule.target,
        ontology=ontology,
        relation=INVERSE[rule.relation] if inverted else rule.relation,
        confidence=rule.confidence or 0.0,
        alignment=name,
        inverted=inverted,
        override=rule.override,
    )


def _describe(step: TranslationStep) -> str:
    decided = ", decided by a user" if step.override else ""
    inverted = ", inverted" if step.inverted else ""
    reasons = f"confidence {step.confidence:.2f}{decided}; {step.alignment}{inverted}"
    return f"{step.source} {_WORDS[step.relation]} {step.target} ({reasons})"


def _with_confidence(rule: MappingRule, alignment: Alignment) -> MappingRule:
    return msgspec.structs.replace(rule, confidence=alignment.confidence_of(rule))


def _chain(steps: tuple[TranslationStep, ...]) -> Relation | None:
    """Return the relation of the first term to the last one; None if the mappings together say nothing."""
    if len(steps) == 1:
        return steps[0].relation
    found: Relation | None = "equivalent"
    for step in steps:
        found = _CHAIN.get((found, step.relation)) if found else None
    return found
