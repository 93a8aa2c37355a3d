"""The aligner: from two ontologies to an alignment, deterministic, incremental and bounded (IoA 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from bespeak.checks.alignment.behavioral import Histories
from bespeak.checks.alignment.candidates import Candidate, Candidates
from bespeak.checks.alignment.embeddings import Embed
from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT as DEFAULT_POLICY
from bespeak.checks.alignment.resolution import Lost, resolve
from bespeak.contract.ontology.alignment import Alignment, MappingRule, Provenance, Relation
from bespeak.contract.ontology.namespace import DEFAULT, OWL, RDF, RDFS, SKOS, XSD, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.term import Term
from bespeak.protocol.fault import Fault

MOST_TERMS: Final = 20_000
"""Most terms of an ontology that can be aligned."""
TOOL: Final = "bespeak"
_BUILT_IN: Final = (OWL, RDF, RDFS, XSD)


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Explicit decision of a user: a term has this counterpart, or none."""

    source: str
    target: str = ""
    """IRI of the counterpart, or an empty string if the term has none."""
    by: str
    relation: Relation = "equivalent"


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier alignment, with the ontologies that it was made for unless they are the same versions."""

    alignment: Alignment
    source: Ontology | None = None
    target: Ontology | None = None


class Aligned(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the aligner."""

    alignment: Alignment
    """Mappings that the policy accepts."""
    questions: tuple[Candidate, ...]
    """Candidates that a person should decide, the best first."""
    candidates: Mapping[str, Mapping[str, Candidate]]
    """All candidates by source and target."""
    lost: tuple[Lost, ...]
    """Mappings that would be accepted, but for another one of the same term."""


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
    fault = _override_fault(overrides, source, target)
    if fault is not None:
        return fault
    kept = _kept(base, source, target, overrides)
    fixed = {rule.source: rule.target for rule in kept if rule.relation == "equivalent"}
    taken = set(fixed.values()) if policy.one_to_one else set()
    rest = [term for term in sides[0] if term.iri not in fixed], [term for term in sides[1] if term.iri not in taken]
    candidates = Candidates(*rest, (source, target), policy, histories=histories or {}, embed=embed, fixed=fixed)
    candidates.compare("class", "individual")
    chosen = resolve(_proposed(candidates, overrides, policy, provenance), policy).chosen
    candidates.compare_properties({rule.source: rule.target for rule in chosen if rule.relation == "equivalent"})
    resolution = resolve(_proposed(candidates, overrides, policy, provenance), policy)
    rules = sorted((*kept, *resolution.chosen), key=lambda rule: (rule.source, rule.target))
    return Aligned(
        alignment=Alignment(source=source.ref, target=target.ref, rules=tuple(rules), provenance=provenance),
        questions=_questions(candidates, rules, policy),
        candidates=candidates.found,
        lost=resolution.lost,
    )


def _terms(ontology: Ontology, other: Ontology, namespace: Namespace) -> list[Term]:
    """Return the terms that need a counterpart: individuals only if they are concepts, capabilities and the like."""
    concepts = (namespace.terms, SKOS)
    return [
        term
        for term in ontology.of_kind("class", "individual", "object_property", "data_property")
        if term.iri not in other.terms
        and not term.iri.startswith(_BUILT_IN)
        and not term.deprecated
        and (term.kind != "individual" or any(one.startswith(concepts) for one in term.types))
    ]


def _override_fault(overrides: Iterable[Override], source: Ontology, target: Ontology) -> Fault | None:
    for one in overrides:
        for iri, ontology in ((one.source, source), (one.target, target)):
            if iri not in ontology.terms and (iri or ontology is source):
                return Fault(f"the override by {one.by} names {iri}, which is not a term of {ontology.id}")
    return None


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
    candidates: Candidates, overrides: Sequence[Override], policy: Policy, provenance: Provenance | None
) -> list[MappingRule]:
    """Return the accepted candidates and the overrides as rules that compete with each other."""
    alone = {one.source for one in overrides if not one.target}
    rules = [
        candidate.rule()
        for one, found in candidates.found.items()
        for candidate in found.values()
        if policy.accepts(candidate.band) and one not in alone
    ]
    for one in overrides:
        if one.target:
            known = candidates.found.get(one.source, {}).get(one.target)
            rules.append(
                MappingRule(
                    source=one.source,
                    target=one.target,
                    relation=one.relation,
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


def _questions(candidates: Candidates, rules: Sequence[MappingRule], policy: Policy) -> tuple[Candidate, ...]:
    sources = {rule.source for rule in rules}
    targets = {rule.target for rule in rules} if policy.one_to_one else set()
    open_ = (
        candidate
        for one, found in candidates.found.items()
        if one not in sources
        for candidate in found.values()
        if candidate.target not in targets and candidate.band != "reject"
    )
    return tuple(sorted(open_, key=lambda one: (-one.score, one.source, one.target)))
