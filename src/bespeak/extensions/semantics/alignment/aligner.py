"""The aligner: from two ontologies to an alignment, deterministic, incremental and bounded (IoA 7.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, OWL, RDF, RDFS, SKOS, XSD, Namespace
from bespeak.extensions.semantics.alignment.names import Acronyms, Name, names_of, words_of
from bespeak.extensions.semantics.alignment.policy import DEFAULT as DEFAULT_POLICY
from bespeak.extensions.semantics.alignment.policy import (
    Alignment,
    Band,
    Lost,
    MappingRule,
    Policy,
    Provenance,
    resolve,
)
from bespeak.extensions.semantics.alignment.signals import (
    FLOOR,
    Embed,
    Hierarchy,
    Histories,
    NameIndex,
    NameMatch,
    Scores,
    Vectors,
    behavioral,
    contrast,
    structural,
)
from bespeak.extensions.semantics.terms import Kind, Ontology, Term
from bespeak.protocol.exchange.refusal import Fault

# Score, and the precision of the accepted pairs around it: an isotonic table over public benchmarks of classes
# (with many synonyms, and with few names) and of properties.
_CLASSES: Final = (
    *((0.0, 0.0), (0.5, 0.1), (0.65, 0.27), (0.72, 0.46)),
    *((0.78, 0.66), (0.88, 0.8), (0.96, 0.94), (1.0, 0.98)),
)
_PROPERTIES: Final = ((0.0, 0.0), (0.5, 0.1), (0.7, 0.5), (0.8, 0.62), (0.95, 0.8), (1.0, 0.88))


def calibrate(score: float, *, of_property: bool = False) -> float:
    """Return the confidence of a score, 0 to 1; a higher score never has a lower confidence."""
    table = _PROPERTIES if of_property else _CLASSES
    score = min(max(score, 0.0), 1.0)
    place = min(bisect_right(table, (score, 2.0)), len(table) - 1)
    (low, least), (high, most) = table[place - 1], table[place]
    return round(least + (most - least) * (score - low) / (high - low), 4)


_UNKNOWN: Final = 0.8  # agreement of properties that declare too little to compare
_RELATED: Final = 0.8
_GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string", "normalizedString", "token", "language", "Name", "anyURI", "ID"), "text"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "decimal", "float", "double"), "number"),
    **dict.fromkeys(("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong"), "number"),
    "unsignedShort": "number",
    **dict.fromkeys(("date", "dateTime", "time", "gYear", "gYearMonth", "dateTimeStamp"), "time"),
    "boolean": "boolean",
}


class PropertyStage:
    """Agreement of properties, judged by the classes that were aligned before."""

    def __init__(self, accepted: Mapping[str, str], scores: Scores, source: Hierarchy, target: Hierarchy) -> None:
        self._accepted, self._scores = accepted, scores
        self._source, self._target = source, target

    def agreement(self, one: Term, other: Term) -> tuple[float, dict[str, float]]:
        """Return the factor for the score of the names, and its parts."""
        domain, range_ = self._classes(one.domains, other.domains), self._classes(one.ranges, other.ranges)
        known = {name: value for name, value in (("domain", domain), ("range", range_)) if value is not None}
        # Most data properties hold texts: that says less than what has them.
        weights = {"domain": 1.0, "range": 1.0 if one.kind == "object_property" else 0.4}
        total = sum(weights[name] for name in known)
        agreed = sum(weights[name] * value for name, value in known.items()) / total if total else _UNKNOWN
        factor = 0.5 + agreed / 2
        if one.kind == "object_property" and len(known) == 2:
            crossed = (self._classes(one.domains, other.ranges), self._classes(one.ranges, other.domains))
            # `hasAuthor` and `authorOf` have the same words, but lead in opposite directions.
            if sum(value or 0.0 for value in crossed) / 2 > agreed + 0.25:
                factor *= 0.5
        return factor, known

    def _classes(self, ours: tuple[str, ...], theirs: tuple[str, ...]) -> float | None:
        """Return the agreement of the closest pair, so that a part of a union is enough; None if one side is empty."""
        if not ours or not theirs:
            return None
        return max(self._pair(one, other) for one in ours[:24] for other in theirs[:24])

    def _pair(self, one: str, other: str) -> float:
        if one == other or self._accepted.get(one) == other:
            return 1.0
        if one.startswith(XSD) or other.startswith(XSD):
            ours, theirs = (_GROUPS.get(iri.removeprefix(XSD), "other") for iri in (one, other))
            # Many ontologies write texts for everything.
            return 1.0 if ours == theirs else 0.6 if "text" in (ours, theirs) else 0.2
        counterpart = self._accepted.get(one)
        if counterpart is not None and (
            counterpart in self._target.ancestors(other) or other in self._target.ancestors(counterpart)
        ):
            return _RELATED
        if any(self._accepted.get(high) == other for high in self._source.ancestors(one)):
            return _RELATED
        return self._scores.get(one, {}).get(other, 0.0)


_EXPECTED_STRUCTURE: Final = 0.5  # agreement of neighbors that neither supports nor contradicts a pair
_INVERSES: Final = 8


class TermPair(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    score: float
    confidence: float
    band: Band
    signals: Mapping[str, float]
    names: tuple[str, str]  # names that were found to be closest

    def rule(self) -> MappingRule:
        return MappingRule(
            source=self.source,
            target=self.target,
            confidence=self.confidence,
            score=self.score,
            justification="lexical" if set(self.signals) == {"lexical"} else "composite",
            signals=self.signals,
        )


class PairCandidates:
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
        named = [(term.labels or (term.local_name,), term.synonyms) for term in (*source, *target)]
        self._acronyms = Acronyms(text for names, more in named for text in (*names, *(one.text for one in more)))
        self.found: dict[str, dict[str, TermPair]] = {}  # candidates by source and target

    def compare(self, *kinds: Kind) -> None:
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
                        doubt = min(1.0, max(0.2, 4 * (1 - match.score)))
                        score += self._policy.structure * doubt * (agreed - _EXPECTED_STRUCTURE)
                    fitting = behavioral(self._ontologies[0].terms[one], self._ontologies[1].terms[other])
                    if fitting is not None:
                        signals["behavioral"] = fitting
                        score += self._policy.behavior * (fitting - 0.5)
                    history = self._histories.get((one, other))
                    if history is not None:
                        signals["history"] = history.rate
                        score += 2 * self._policy.history * history.reliability * (history.rate - 0.5)
                    self._add(one, other, score, signals, (match.source.text, match.target.text))

    def compare_properties(self, accepted: Mapping[str, str]) -> None:
        scores = {one: {other: found.score for other, found in all_.items()} for one, all_ in self.found.items()}
        stage = PropertyStage({**accepted, **self._fixed}, scores, *self._hierarchies)
        for kind in ("object_property", "data_property"):
            matches, vectors = self._match(kind)
            for one, found in matches.items():
                for other, match in found.items():
                    signals = {"lexical": match.score}
                    score = self._mix_embedding(match, vectors, signals)
                    factor, parts = stage.agreement(self._ontologies[0].terms[one], self._ontologies[1].terms[other])
                    names = (match.source.text, match.target.text)
                    self._add(one, other, score * factor, {**signals, **parts}, names, of_property=True)
        self._support_inverses()

    def _match(self, kind: Kind) -> tuple[dict[str, dict[str, NameMatch]], Vectors | None]:
        ours, theirs = (
            {term.iri: self._names(term, ontology) for term in side if term.kind == kind}
            for side, ontology in zip(self._sides, self._ontologies, strict=True)
        )
        lexicon = NameIndex(ours, theirs)
        matches = {iri: lexicon.matches(iri) for iri in sorted(ours)}
        if self._embed is None or not ours or not theirs:
            return matches, None
        vectors = Vectors(self._embed, ours, theirs)
        for iri, near in vectors.near().items():
            for other, (cosine, name, twin) in near.items():
                factor = contrast(name.key - twin.key, twin.key - name.key) * name.weight * twin.weight
                score = 0.9 * cosine * factor
                known = matches[iri].get(other)
                if score >= FLOOR and (known is None or known.score < score):
                    matches[iri][other] = NameMatch(score, name, twin)
        return matches, vectors

    def _names(self, term: Term, ontology: Ontology) -> list[Name]:
        near = (ontology.terms.get(iri) for iri in (*term.domains, *term.ranges)[:24])
        return names_of(term, self._acronyms, {word for one in near if one for word in words_of(_name(one))})

    def _mix_embedding(self, match: NameMatch, vectors: Vectors | None, signals: dict[str, float]) -> float:
        if vectors is None:
            return match.score
        one, other = match.source, match.target
        # Vectors of names that differ only in a number or a side are almost the same.
        cosine = vectors.cosine(one, other) * contrast(one.key - other.key, other.key - one.key)
        signals["embedding"] = cosine
        weight = self._policy.embedding
        return (1 - weight) * match.score + weight * cosine * min(one.weight, other.weight)

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
        self.found.setdefault(one, {})[other] = TermPair(
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
                score = found.score * 0.95
                if pair is None or pair.score < score:
                    signals = {**(pair.signals if pair else {}), "inverse": found.score}
                    names = pair.names if pair else (_name(one), _name(other))
                    self._add(one.iri, other.iri, score, signals, names, of_property=True)


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


MOST_TERMS: Final = 20_000  # most terms of an ontology that can be aligned
TOOL: Final = "bespeak"


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Explicit decision of a user: a term has this counterpart, or none."""

    source: str
    target: str = ""  # IRI of the counterpart, or an empty string if the term has none
    by: str


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier alignment, with the ontologies that it was made for unless they are the same versions."""

    alignment: Alignment
    source: Ontology | None = None
    target: Ontology | None = None


class Aligned(msgspec.Struct, frozen=True, kw_only=True):
    alignment: Alignment  # mappings that the policy accepts
    questions: tuple[TermPair, ...]  # candidates that a person should decide, the best first
    candidates: Mapping[str, Mapping[str, TermPair]]  # all candidates by source and target
    lost: tuple[Lost, ...]  # mappings that would be accepted, but for another one of the same term


def align(
    source: Ontology,
    target: Ontology,
    *,
    policy: Policy = DEFAULT_POLICY,
    base: Base | None = None,
    overrides: Sequence[Override] = (),
    histories: Histories | None = None,
    embed: Embed | None = None,
    provenance: Provenance | None = None,
    namespace: Namespace = DEFAULT,
) -> Aligned | Fault:
    """Align two ontologies: classes and individuals first, then properties.

    Overrides are recorded beside the score, never inside it. Rules of `base` are kept where both terms are unchanged.
    """
    sides = [_terms(*pair, namespace) for pair in ((source, target), (target, source))]
    for side, ontology in zip(sides, (source, target), strict=True):
        if len(side) > MOST_TERMS:
            return Fault(f"an ontology with at most {MOST_TERMS} terms can be aligned; {ontology.id} has {len(side)}")
    for one in overrides:
        for iri, ontology in ((one.source, source), (one.target, target)):
            if iri not in ontology.terms and (iri or ontology is source):
                return Fault(f"the override by {one.by} names {iri}, which is not a term of {ontology.id}")
    kept = _kept(base, source, target, overrides)
    fixed = {rule.source: rule.target for rule in kept if rule.relation == "equivalent"}
    taken = set(fixed.values())
    rest = [term for term in sides[0] if term.iri not in fixed], [term for term in sides[1] if term.iri not in taken]
    candidates = PairCandidates(*rest, (source, target), policy, histories=histories or {}, embed=embed, fixed=fixed)
    candidates.compare("class", "individual")
    chosen = resolve(_proposed(candidates, overrides, policy, provenance), policy).chosen
    candidates.compare_properties({rule.source: rule.target for rule in chosen if rule.relation == "equivalent"})
    resolution = resolve(_proposed(candidates, overrides, policy, provenance), policy)
    rules = sorted((*kept, *resolution.chosen), key=lambda rule: (rule.source, rule.target))
    mapped = {rule.source for rule in rules}
    targets = {rule.target for rule in rules}
    pairs = (pair for one, found in candidates.found.items() if one not in mapped for pair in found.values())
    questions = (pair for pair in pairs if pair.target not in targets and pair.band != "reject")
    return Aligned(
        alignment=Alignment(source=source.ref, target=target.ref, rules=tuple(rules), provenance=provenance),
        questions=tuple(sorted(questions, key=lambda one: (-one.score, one.source, one.target))),
        candidates=candidates.found,
        lost=resolution.lost,
    )


def _terms(ontology: Ontology, other: Ontology, namespace: Namespace) -> list[Term]:
    """Return the terms that need a counterpart: individuals only if they are concepts, capabilities and the like."""
    concepts = (namespace.terms, SKOS)
    terms = sorted(ontology.terms.values(), key=lambda term: term.iri)
    own = [one for one in terms if one.iri not in other.terms and not one.iri.startswith((OWL, RDF, RDFS, XSD))]
    own = [one for one in own if not one.deprecated]
    return [one for one in own if one.kind != "individual" or any(kind.startswith(concepts) for kind in one.types)]


def _kept(base: Base | None, source: Ontology, target: Ontology, overrides: Sequence[Override]) -> list[MappingRule]:
    """Return the rules of the base whose terms are unchanged and not decided anew."""
    if base is None:
        return []
    decided = {one.source for one in overrides} | {one.target for one in overrides}
    sides = ((source, base.source, base.alignment.source), (target, base.target, base.alignment.target))

    def unchanged(iri: str, side: int) -> bool:
        now, before, ref = sides[side]
        if iri not in now.terms or iri in decided:
            return False
        return ref == now.ref if before is None else before.terms.get(iri) == now.terms[iri]

    return [rule for rule in base.alignment.rules if unchanged(rule.source, 0) and unchanged(rule.target, 1)]


def _proposed(
    candidates: PairCandidates, overrides: Sequence[Override], policy: Policy, provenance: Provenance | None
) -> list[MappingRule]:
    """Return the accepted candidates and the overrides as rules that compete with each other."""
    alone = {one.source for one in overrides if not one.target}
    pairs = (pair for one, found in candidates.found.items() if one not in alone for pair in found.values())
    rules = [pair.rule() for pair in pairs if policy.accepts(pair.band)]
    for one in overrides:
        if one.target:
            known = candidates.found.get(one.source, {}).get(one.target)
            rules.append(
                MappingRule(
                    source=one.source,
                    target=one.target,
                    confidence=1.0,
                    score=known.score if known else None,
                    signals=known.signals if known else {},
                    justification="manual",
                    override=True,
                    confirmed_by=one.by,
                    provenance=msgspec.structs.replace(provenance or Provenance(), author=one.by),
                )
            )
    return rules
