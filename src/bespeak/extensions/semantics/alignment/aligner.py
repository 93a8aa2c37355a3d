"""The aligner: from two ontologies to an alignment, deterministic, incremental and bounded (IoA 7.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import product
from typing import Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, OWL, RDF, RDFS, SKOS, XSD, Namespace
from bespeak.extensions.semantics.alignment.names import Acronyms, Name, names_of, words_of
from bespeak.extensions.semantics.alignment.policy import DEFAULT as DEFAULT_POLICY
from bespeak.extensions.semantics.alignment.policy import (
    Alignment,
    Band,
    Justification,
    Lost,
    MappingRule,
    Policy,
    Provenance,
    Unmapped,
    resolve,
)
from bespeak.extensions.semantics.alignment.signals import (
    Embed,
    Hierarchy,
    Histories,
    Named,
    NameIndex,
    NameMatch,
    Scores,
    Vectors,
    behavioral,
    contrast,
    structural,
)
from bespeak.extensions.semantics.terms import Kind, Meanings, Ontology, Term
from bespeak.protocol.exchange.refusal import Fault

# Score, and the share of pairs around it that are right, as tools/alignment/fit.py has found them.
_SUPPORTED: Final = ((0.0, 0.0), (0.6, 0.2), (0.75, 0.41), (0.82, 0.63), (0.9, 0.81), (0.97, 0.92), (1.0, 0.98))
_ALONE: Final = ((0.0, 0.0), (0.6, 0.17), (0.75, 0.31), (0.82, 0.5), (0.9, 0.62), (0.97, 0.8), (1.0, 0.86))
_PROPERTIES: Final = ((0.0, 0.0), (0.5, 0.26), (0.7, 0.47), (0.85, 0.51), (1.0, 0.62))


def calibrate(score: float, *, of_property: bool = False, supported: bool = False) -> float:
    """Return the confidence of a score, 0 to 1; a higher score never has a lower confidence.

    A pair is `supported` if the terms around it agree as well.
    """
    table = _PROPERTIES if of_property else _SUPPORTED if supported else _ALONE
    score = min(max(score, 0.0), 1.0)
    place = min(bisect_right(table, (score, 2.0)), len(table) - 1)
    (low, least), (high, most) = table[place - 1], table[place]
    return round(least + (most - least) * (score - low) / (high - low), 4)


_UNKNOWN: Final = 0.8  # agreement of properties that declare too little to compare
_RELATED: Final = 0.8
# Factors of properties of things where neither end is the same class, and of any whose ends have nothing in common.
_NEITHER_END, _STRANGE_END = 0.7, 0.9
_STRANGE: Final = 0.3
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
        if known and max(known.values()) < 1.0 and one.kind == "object_property":
            factor *= _NEITHER_END
        if known and min(known.values()) < _STRANGE:
            factor *= _STRANGE_END
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


_CLOSE: Final = 0.95  # cosine from which the closest classes count as the same
_SURE, _ASKED = 0.93, (0.78, 0.65)  # factors of a cosine: a mapping, or a question about a class or a property
_OPPOSITE: Final = 0.7
_SHORTEST: Final = 3  # letters of a word whose vector says something
_HOMONYM, _LOOKS_ALIKE = 0.7, 0.8
_EXPECTED_STRUCTURE: Final = 0.5  # agreement of neighbors that neither supports nor contradicts a pair
_INVERSES: Final = 8


_JUSTIFIED: Final[Mapping[tuple[str, ...], Justification]] = {("lexical",): "lexical", ("embedding",): "embedding"}


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
            justification=_JUSTIFIED.get(tuple(self.signals), "composite"),
            signals=self.signals,
        )


_TWIN: Final = 0.95  # score of names from which two terms above others count as the same


def _twins(scores: Scores) -> dict[str, str]:
    """Return the terms that have the same names, in both directions."""
    found: dict[str, str] = {}
    for one, others in scores.items():
        best = max(others.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0.0))
        if best[1] >= _TWIN:
            found[one] = best[0]
            found[best[0]] = one
    return found


def _contradict(ours: set[str], theirs: set[str], twins: Mapping[str, str]) -> bool:
    """Return True if terms stand below different things: each below a term whose twin is not above the other."""
    return any(twins[high] not in theirs for high in ours if high in twins) and any(
        twins[high] not in ours for high in theirs if high in twins
    )


def _roles(ontology: Ontology, namespace: Namespace) -> dict[str, set[str]]:
    """Return what terms are by the core ontology, such as capabilities; nothing for other terms."""
    meanings = Meanings([ontology], namespace)
    found: dict[str, set[str]] = {}
    for name in ("capabilities", "intents", "concepts", "domains", "agents", "tasks"):
        for iri in getattr(meanings, name):
            found.setdefault(iri, set()).add(name)
    return found


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
        fixed: Mapping[str, str],
        namespace: Namespace,
    ) -> None:
        self._policy, self._histories = policy, histories
        self._roles = _roles(ontologies[0], namespace), _roles(ontologies[1], namespace)
        self._sides = (source, target)
        self._hierarchies = (Hierarchy(ontologies[0]), Hierarchy(ontologies[1]))
        self._ontologies, self._fixed = ontologies, fixed
        named = [(term.labels or (term.local_name,), term.synonyms) for term in (*source, *target)]
        self._acronyms = Acronyms(text for names, more in named for text in (*names, *(one.text for one in more)))
        self.found: dict[str, dict[str, TermPair]] = {}  # candidates by source and target

    def compare(self, *kinds: Kind) -> None:
        for kind in kinds:
            matches = self._match(kind)
            scores = {one: {other: match.score for other, match in found.items()} for one, found in matches.items()}
            scores |= {one: {other: 1.0} for one, other in self._fixed.items()}
            source, target = self._hierarchies
            twins = _twins(scores)
            for one, found in matches.items():
                for other, match in found.items():
                    signals = {"lexical": match.score}
                    score = match.score
                    agreed = structural(source.neighbors(one), target.neighbors(other), scores)
                    if agreed is not None:
                        signals["structural"] = agreed
                        # Neighbors decide what the names leave open.
                        doubt = min(1.0, 4 * (1 - match.score))
                        score += self._policy.structure * doubt * (agreed - _EXPECTED_STRUCTURE)
                        score *= self._doubt(one, other, match, agreed, twins)
                    fitting = behavioral(self._ontologies[0].terms[one], self._ontologies[1].terms[other])
                    if fitting is not None:
                        signals["behavioral"] = fitting
                        score += self._policy.behavior * (fitting - 0.5)
                    history = self._histories.get((one, other))
                    if history is not None:
                        signals["history"] = history.rate
                        score += 2 * self._policy.history * history.reliability * (history.rate - 0.5)
                    self._add(one, other, score, signals, (match.source.text, match.target.text))

    def _doubt(self, one: str, other: str, match: NameMatch, agreed: float, twins: Mapping[str, str]) -> float:
        """Return the factor for homonyms below different things, and for spellings that only look alike."""
        source, target = self._hierarchies
        if agreed < _EXPECTED_STRUCTURE and _contradict(source.ancestors(one), target.ancestors(other), twins):
            return _HOMONYM
        return _LOOKS_ALIKE if agreed == 0 and match.source.key.isdisjoint(match.target.key) else 1.0

    def compare_properties(self, accepted: Mapping[str, str]) -> None:
        scores = {one: {other: found.score for other, found in all_.items()} for one, all_ in self.found.items()}
        stage = PropertyStage({**accepted, **self._fixed}, scores, *self._hierarchies)
        for kind in ("object_property", "data_property"):
            for one, found in self._match(kind).items():
                for other, match in found.items():
                    signals = {"lexical": match.score}
                    factor, parts = stage.agreement(self._ontologies[0].terms[one], self._ontologies[1].terms[other])
                    names = (match.source.text, match.target.text)
                    self._add(one, other, match.score * factor, {**signals, **parts}, names)
        self._support_inverses()

    def _match(self, kind: Kind) -> dict[str, dict[str, NameMatch]]:
        """Return the pairs of similar names; a capability is not compared with an intent."""
        ours, theirs = self._named(kind)
        lexicon = NameIndex(ours, theirs)
        return {
            iri: {other: match for other, match in lexicon.matches(iri).items() if self._agree_in_role(iri, other)}
            for iri in sorted(ours)
        }

    def _named(self, kind: Kind) -> tuple[Named, Named]:
        ours, theirs = (
            {term.iri: self._names(term, ontology) for term in side if term.kind == kind}
            for side, ontology in zip(self._sides, self._ontologies, strict=True)
        )
        return ours, theirs

    def add_embedded(self, embed: Embed, mapped: Set[str]) -> None:
        """Add pairs whose names have close vectors, where neither term is mapped: evidence of names is never replaced.

        The closest pairs of classes count as mappings. All others are questions.
        """
        for kind in ("class", "individual", "object_property", "data_property"):
            sides = self._named(kind)
            if not all(sides):
                continue
            near = Vectors(embed, *sides).near()
            closest: dict[str, float] = {}
            for iri, found in near.items():
                for other, (cosine, _, _) in found.items():
                    closest[iri], closest[other] = max(closest.get(iri, 0), cosine), max(closest.get(other, 0), cosine)
            for iri, found in near.items():
                for other, (cosine, name, twin) in found.items():
                    if iri not in mapped and other not in mapped and self._agree_in_role(iri, other):
                        known = self.found.get(iri, {}).get(other)
                        differ = contrast(name.key - twin.key, twin.key - name.key) < _OPPOSITE
                        differ |= any(len(word) < _SHORTEST for word in name.key ^ twin.key)  # it has no vector
                        signals = {**(known.signals if known else {}), "embedding": cosine}
                        supported = signals.get("structural", 0.0) >= _EXPECTED_STRUCTURE
                        sure = kind == "class" and cosine >= _CLOSE and cosine == closest[iri] == closest[other]
                        factor = _SURE if sure and supported and not differ else _ASKED[kind.endswith("property")]
                        score = cosine * name.weight * twin.weight * factor
                        if known is None or known.score < score:
                            self._add(iri, other, score, signals, (name.text, twin.text))

    def _agree_in_role(self, one: str, other: str) -> bool:
        roles, others = self._roles
        return one not in roles or other not in others or not roles[one].isdisjoint(others[other])

    def _names(self, term: Term, ontology: Ontology) -> list[Name]:
        near = (ontology.terms.get(iri) for iri in (*term.domains, *term.ranges)[:24])
        return names_of(term, self._acronyms, {word for one in near if one for word in words_of(_name(one))})

    def _add(self, one: str, other: str, score: float, signals: Mapping[str, float], names: tuple[str, str]) -> None:
        score = round(min(max(score, 0.0), 1.0), 4)
        of_property = self._ontologies[0].terms[one].kind.endswith("property")
        supported = signals.get("structural", 0.0) >= _EXPECTED_STRUCTURE
        confidence = calibrate(score, of_property=of_property, supported=supported)
        self.found.setdefault(one, {})[other] = TermPair(
            source=one,
            target=other,
            score=score,
            confidence=confidence,
            band=self._policy.band(confidence),
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
                    self._add(one.iri, other.iri, score, signals, names)


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


_BEHIND: Final = 0.05  # most by which the score of a mapping is below the best of either term
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
    unmatched: tuple[str, ...] = ()  # terms of the source without a candidate
    dropped: tuple[MappingRule | Unmapped, ...] = ()  # decisions of the base whose terms are gone


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
    unmapped = _unmapped(base, source, overrides)
    left_out = {*fixed, *fixed.values(), *(one.source for one in unmapped)}
    rest, others = ([term for term in side if term.iri not in left_out] for side in sides)
    ontologies = (source, target)
    candidates = PairCandidates(
        rest, others, ontologies, policy, histories=histories or {}, fixed=fixed, namespace=namespace
    )
    candidates.compare("class", "individual")
    chosen = resolve(_proposed(candidates, overrides, policy, provenance), policy).chosen
    candidates.compare_properties({rule.source: rule.target for rule in chosen if rule.relation == "equivalent"})
    resolution = resolve(_proposed(candidates, overrides, policy, provenance), policy)
    if embed is not None:
        mapped = {iri for rule in (*kept, *resolution.chosen) for iri in (rule.source, rule.target)}
        candidates.add_embedded(embed, mapped)
        resolution = resolve(_proposed(candidates, overrides, policy, provenance), policy)
    rules = sorted((*kept, *resolution.chosen), key=lambda rule: (rule.source, rule.target))
    mapped = {rule.source for rule in rules}
    targets = {rule.target for rule in rules}
    pairs = (pair for one, found in candidates.found.items() if one not in mapped for pair in found.values())
    questions = (pair for pair in pairs if pair.target not in targets and pair.band != "reject")
    asked = tuple(sorted(questions, key=lambda one: (-one.score, one.source, one.target)))
    known = mapped.union(one.source for one in asked)
    return Aligned(
        alignment=Alignment(
            source=source.ref, target=target.ref, rules=tuple(rules), unmapped=unmapped, provenance=provenance
        ),
        questions=asked,
        unmatched=tuple(term.iri for term in rest if term.iri not in known),
        candidates=candidates.found,
        lost=resolution.lost,
        dropped=() if base is None else tuple(_dropped(base.alignment, source, target)),
    )


def _unmapped(base: Base | None, source: Ontology, overrides: Sequence[Override]) -> tuple[Unmapped, ...]:
    """Return the terms without a counterpart, by a decision now or one of the base that no other has replaced."""
    decided = {one.source for one in overrides}
    before = () if base is None else base.alignment.unmapped
    found = {one.source: one for one in before if one.source in source.terms and one.source not in decided}
    found |= {one.source: Unmapped(source=one.source, confirmed_by=one.by) for one in overrides if not one.target}
    return tuple(one for _, one in sorted(found.items()))


def _is_decided(rule: MappingRule) -> bool:
    """Return True if a person has decided about a rule, or has said how values are translated."""
    return rule.override or rule.values is not None


def _dropped(base: Alignment, source: Ontology, target: Ontology) -> Iterator[MappingRule | Unmapped]:
    for rule in base.rules:
        if _is_decided(rule) and (rule.source not in source.terms or rule.target not in target.terms):
            yield rule
    yield from (one for one in base.unmapped if one.source not in source.terms)


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

    def stands(rule: MappingRule) -> bool:
        # The decision of a person holds as long as both terms are there, whatever else is said of them now.
        known = rule.source in source.terms and rule.target in target.terms
        return _is_decided(rule) and known and decided.isdisjoint((rule.source, rule.target))

    rules = base.alignment.rules
    return [rule for rule in rules if stands(rule) or (unchanged(rule.source, 0) and unchanged(rule.target, 1))]


def _proposed(
    candidates: PairCandidates, overrides: Sequence[Override], policy: Policy, provenance: Provenance | None
) -> list[MappingRule]:
    """Return the accepted candidates and the overrides as rules that compete with each other."""
    pairs = (pair for found in candidates.found.values() for pair in found.values())
    best: dict[str, float] = {}
    for found in candidates.found.values():
        for pair in found.values():
            for iri in (pair.source, pair.target):
                best[iri] = max(best.get(iri, 0.0), pair.score)
    # A term whose best counterpart is taken has none: the next best one is hardly ever right.
    accepted = (pair for pair in pairs if policy.accepts(pair.band))
    rules = [pair.rule() for pair in accepted if max(best[pair.source], best[pair.target]) - pair.score <= _BEHIND]
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
