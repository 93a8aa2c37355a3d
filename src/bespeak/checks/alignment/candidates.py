"""Candidates of an alignment: every pair of terms that may mean the same, with all signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import msgspec

from bespeak.checks.alignment.behavioral import Histories, behavioral
from bespeak.checks.alignment.calibration import calibrate
from bespeak.checks.alignment.embeddings import Embed, Vectors
from bespeak.checks.alignment.lexical import FLOOR, Lexicon, Match, contrast
from bespeak.checks.alignment.names import Acronyms, Name, names_of
from bespeak.checks.alignment.policy import Band, Policy
from bespeak.checks.alignment.properties import PropertyStage
from bespeak.checks.alignment.structural import Hierarchy, structural
from bespeak.checks.alignment.words import words_of
from bespeak.contract.ontology.alignment import Justification, MappingRule
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.term import Kind, Term

_LEAST_DOUBT: Final = 0.2
_EXPECTED_STRUCTURE: Final = 0.5
"""Agreement of neighbors that neither supports nor contradicts a pair."""
_NEAR_FACTOR: Final = 0.9
_INVERSE_FACTOR: Final = 0.95
_INVERSES: Final = 8


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A pair of terms with its score and the reasons."""

    source: str
    target: str
    score: float
    confidence: float
    band: Band
    signals: Mapping[str, float]
    names: tuple[str, str]
    """Names that were found to be closest."""

    def rule(self) -> MappingRule:
        """Return the candidate as a mapping rule."""
        return MappingRule(
            source=self.source,
            target=self.target,
            confidence=self.confidence,
            score=self.score,
            justification=_justification(self.signals),
            signals=self.signals,
        )


class Candidates:
    """Pairs of two ontologies, computed once. Terms in `fixed` have their counterparts already."""

    def __init__(
        self,
        source: Sequence[Term],
        target: Sequence[Term],
        ontologies: tuple[Ontology, Ontology],
        policy: Policy,
        *,
        histories: Histories,
        embed: Embed | None,
        fixed: Mapping[str, str],
    ) -> None:
        self._policy, self._histories, self._embed = policy, histories, embed
        self._sides = (source, target)
        self._hierarchies = (Hierarchy(ontologies[0]), Hierarchy(ontologies[1]))
        self._ontologies, self._fixed = ontologies, fixed
        texts = [text for side in self._sides for term in side for text in (*term.labels, *_alternatives(term))]
        self._acronyms = Acronyms(texts)
        self.found: dict[str, dict[str, Candidate]] = {}
        """Candidates by source and target."""

    def compare(self, *kinds: Kind) -> None:
        """Compare the terms of each kind: names, neighbors, behavior."""
        for kind in kinds:
            matches, vectors = self._match(kind)
            scores = {one: {other: match.score for other, match in found.items()} for one, found in matches.items()}
            scores |= {one: {other: 1.0} for one, other in self._fixed.items()}
            source, target = self._hierarchies
            for one, found in matches.items():
                for other, match in found.items():
                    signals = {"lexical": match.score}
                    score = self._mix_embedding(match, vectors, signals)
                    agreed = structural(source.neighbors(one), target.neighbors(other), scores)
                    if agreed is not None:
                        signals["structural"] = agreed
                        # Neighbors decide what the names leave open.
                        doubt = min(1.0, max(_LEAST_DOUBT, 4 * (1 - match.score)))
                        score += self._policy.structure * doubt * (agreed - _EXPECTED_STRUCTURE)
                    score = self._mix_behavior(one, other, score, signals)
                    self._add(one, other, score, signals, (match.source.text, match.target.text))

    def compare_properties(self, accepted: Mapping[str, str]) -> None:
        """Compare properties, with the classes that were accepted before."""
        scores = {one: {other: found.score for other, found in all_.items()} for one, all_ in self.found.items()}
        stage = PropertyStage({**accepted, **self._fixed}, scores, *self._hierarchies)
        for kind in ("object_property", "data_property"):
            matches, vectors = self._match(kind)
            for one, found in matches.items():
                for other, match in found.items():
                    signals = {"lexical": match.score}
                    score = self._mix_embedding(match, vectors, signals)
                    factor, parts = stage.agreement(self._ontologies[0].terms[one], self._ontologies[1].terms[other])
                    self._add(
                        one,
                        other,
                        score * factor,
                        {**signals, **parts},
                        (match.source.text, match.target.text),
                        of_property=True,
                    )
        self._support_inverses()

    def _match(self, kind: Kind) -> tuple[dict[str, dict[str, Match]], Vectors | None]:
        ours, theirs = (
            {term.iri: self._names(term, ontology) for term in side if term.kind == kind}
            for side, ontology in zip(self._sides, self._ontologies, strict=True)
        )
        lexicon = Lexicon(ours, theirs)
        matches = {iri: lexicon.matches(iri) for iri in sorted(ours)}
        if self._embed is None or not ours or not theirs:
            return matches, None
        vectors = Vectors(self._embed, ours, theirs)
        for iri, near in vectors.near().items():
            for other, (cosine, name, twin) in near.items():
                factor = contrast(name.key - twin.key, twin.key - name.key) * name.weight * twin.weight
                score = _NEAR_FACTOR * cosine * factor
                known = matches[iri].get(other)
                if score >= FLOOR and (known is None or known.score < score):
                    matches[iri][other] = Match(score, name, twin)
        return matches, vectors

    def _names(self, term: Term, ontology: Ontology) -> list[Name]:
        near = (ontology.terms.get(iri) for iri in (*term.domains, *term.ranges)[:24])
        around = {word for one in near if one for word in words_of(_name(one))}
        return names_of(term, self._acronyms, around)

    def _mix_embedding(self, match: Match, vectors: Vectors | None, signals: dict[str, float]) -> float:
        if vectors is None:
            return match.score
        one, other = match.source, match.target
        # Vectors of names that differ only in a number or a side are almost the same.
        cosine = vectors.cosine(one, other) * contrast(one.key - other.key, other.key - one.key)
        signals["embedding"] = cosine
        weight = self._policy.embedding
        return (1 - weight) * match.score + weight * cosine * min(one.weight, other.weight)

    def _mix_behavior(self, one: str, other: str, score: float, signals: dict[str, float]) -> float:
        terms = self._ontologies[0].terms[one], self._ontologies[1].terms[other]
        fitting = behavioral(*terms)
        if fitting is not None:
            signals["behavioral"] = fitting
            score += self._policy.behavior * (fitting - 0.5)
        history = self._histories.get((one, other))
        if history is not None:
            signals["history"] = history.rate
            score += 2 * self._policy.history * history.reliability * (history.rate - 0.5)
        return score

    def _add(
        self,
        one: str,
        other: str,
        score: float,
        signals: Mapping[str, float],
        names: tuple[str, str],
        *,
        of_property: bool = False,
    ) -> None:
        score = round(min(max(score, 0.0), 1.0), 4)
        self.found.setdefault(one, {})[other] = Candidate(
            source=one,
            target=other,
            score=score,
            confidence=calibrate(score, of_property=of_property),
            band=self._policy.band(score, of_property=of_property),
            signals={name: round(value, 4) for name, value in signals.items()},
            names=names,
        )

    def _support_inverses(self) -> None:
        """Raise pairs of properties whose inverses are aligned: what one direction means, the other means too."""
        ours, theirs = (_inverses(side) for side in self._sides)
        known = [found for all_ in self.found.values() for found in all_.values() if found.band in ("accept", "policy")]
        for found in known:
            for one, other in product(ours.get(found.source, [])[:_INVERSES], theirs.get(found.target, [])[:_INVERSES]):
                pair = self.found.get(one.iri, {}).get(other.iri)
                score = found.score * _INVERSE_FACTOR
                if pair is None or pair.score < score:
                    signals = {**(pair.signals if pair else {}), "inverse": found.score}
                    names = pair.names if pair else (_name(one), _name(other))
                    self._add(one.iri, other.iri, score, signals, names, of_property=True)


def _alternatives(term: Term) -> Iterator[str]:
    if not term.labels:
        yield term.local_name
    yield from (synonym.text for synonym in term.synonyms)


def _inverses(side: Sequence[Term]) -> dict[str, list[Term]]:
    """Return the inverses of properties, in both directions, sorted by IRI."""
    terms = {term.iri: term for term in side}
    pairs = {(iri, other) for iri, term in terms.items() for other in term.inverses if other in terms}
    found: dict[str, list[Term]] = {}
    for iri, other in sorted(pairs | {(other, iri) for iri, other in pairs}):
        found.setdefault(iri, []).append(terms[other])
    return found


def _name(term: Term) -> str:
    return term.labels[0] if term.labels else term.local_name


def _justification(signals: Mapping[str, float]) -> Justification:
    return "lexical" if set(signals) == {"lexical"} else "composite"
