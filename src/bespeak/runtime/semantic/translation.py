"""Translation of a semantic profile with alignments (IoA 7.1, 7.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import resolve
from bespeak.contract.ontology.alignment import INVERSE, Alignment, MappingRule
from bespeak.contract.ontology.matching import LOW_CONFIDENCE, UNCOVERED
from bespeak.contract.ontology.ontology import Ontology, OntologyRef
from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.verdict import Violation
from bespeak.runtime.semantic.outcome import UsedMapping

_TRANSLATING: Final = frozenset({"equivalent", "broader"})
"""Relations by which a target can stand in for a source: it means the same or more."""


class Direction(msgspec.Struct, frozen=True):
    """An alignment as it is or turned around, indexed by source."""

    alignment: str
    """Id of the artifact."""
    source: OntologyRef
    target: OntologyRef
    rules: Mapping[str, Sequence[MappingRule]]


def directions_of(alignment: Alignment) -> tuple[Direction, Direction]:
    """Return both directions of an alignment. Every rule has its confidence and its provenance."""
    there: dict[str, list[MappingRule]] = {}
    back: dict[str, list[MappingRule]] = {}
    for given in alignment.rules:
        rule = msgspec.structs.replace(
            given,
            confidence=alignment.confidence_of(given),
            provenance=given.provenance or alignment.provenance,
        )
        inverse = INVERSE[rule.relation]
        turned = msgspec.structs.replace(rule, source=rule.target, target=rule.source, relation=inverse)
        if rule.relation in _TRANSLATING:
            there.setdefault(rule.source, []).append(rule)
        if inverse in _TRANSLATING:
            back.setdefault(turned.source, []).append(turned)
    return (
        Direction(alignment.id, alignment.source, alignment.target, there),
        Direction(alignment.id, alignment.target, alignment.source, back),
    )


def is_accepted(rule: MappingRule, policy: Policy) -> bool:
    """Return True if a mapping may be used: it is certain enough, or a person has decided (IoA 7.4)."""
    return rule.override or bool(rule.confirmed_by) or (rule.confidence or 0.0) >= policy.threshold


class Translation:
    """Translation of one profile to one ontology."""

    def __init__(self, directions: Sequence[Direction], target: Ontology, policy: Policy) -> None:
        self.used: dict[str, UsedMapping] = {}
        """Mappings that were used, by source."""
        self.broken: list[Violation] = []
        """What could not be translated."""
        self._directions = directions
        self._target = target
        self._policy = policy

    def translate(self, profile: SemanticProfile) -> SemanticProfile:
        """Return the profile in the other vocabulary."""
        context = profile.context
        if context is not None:
            at = "/profileContext/termBindings"
            context = msgspec.structs.replace(
                context,
                domain=None if context.domain is None else self._term(context.domain, "/profileContext/domain"),
                term_bindings=tuple(
                    msgspec.structs.replace(one, sense=self._term(one.sense, f"{at}/{number}/sense"))
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

    def _term(self, iri: str, path: str) -> str:
        if iri in self._target.terms:
            return iri
        options = list(self._options(iri))
        accepted = [(rule, origin) for rule, origin in options if is_accepted(rule, self._policy)]
        chosen = resolve([rule for rule, _ in accepted], self._policy).chosen
        if not chosen:
            if options:
                highest = max(rule.confidence or 0.0 for rule, _ in options)
                self.broken.append(Violation.of(LOW_CONFIDENCE, path, iri, highest))
            else:
                self.broken.append(Violation.of(UNCOVERED, path, iri, self._target.id))
            return iri
        # What means the same comes before what means more.
        rule = min(chosen, key=lambda one: (one.relation != "equivalent", -(one.confidence or 0.0), one.target))
        origin = next(origin for one, origin in accepted if one == rule)
        self.used[iri] = UsedMapping(rule, rule.confidence or 0.0, origin)
        return rule.target

    def _options(self, iri: str) -> Iterator[tuple[MappingRule, str]]:
        for direction in self._directions:
            for rule in direction.rules.get(iri, ()):
                if rule.target in self._target.terms:
                    yield rule, direction.alignment
