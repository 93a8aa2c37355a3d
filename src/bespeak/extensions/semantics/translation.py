"""Translation of a whole semantic profile with registered alignments (IoA 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from bespeak.extensions.semantics.alignment.policy import Alignment, Policy, Relation, signed_pairs
from bespeak.extensions.semantics.alignment.translation import Translation, Translator
from bespeak.extensions.semantics.profile import SemanticProfile, Violation
from bespeak.extensions.semantics.rules import LOW_CONFIDENCE, UNCOVERED
from bespeak.extensions.semantics.terms import Ontology

_RELATIONS: Final[tuple[Relation, ...]] = ("equivalent", "broader")  # that may stand for a term, the better one first
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
        self._doubtful: dict[str, float] = {}  # highest confidence of a term's mappings that are not accepted
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
                        self._doubtful[iri] = max(confidence, self._doubtful.get(iri, 0.0))
            self._accepted[alignment.id] = msgspec.structs.replace(alignment, rules=tuple(rules))
        self._all = tuple(self._accepted)
        self._translators = {self._all: Translator(self._accepted.values(), policy, signed=self._signed)}

    def translator(self, ids: Sequence[str]) -> Translator:
        key = tuple(ids)
        if key not in self._translators:
            if len(self._translators) >= _MOST_TRANSLATORS:
                self._translators.pop(next(one for one in self._translators if one != self._all))
            chosen = [self._accepted[id_] for id_ in key]
            self._translators[key] = Translator(chosen, self._policy, signed=self._signed)
        return self._translators[key]

    def translate(self, iri: str, sources: Iterable[str], target: str, ids: Sequence[str]) -> Translation | None:
        """Translate a term that some ontologies declare, with some of the alignments.

        The most trusted way comes first, then what means the same before what means more, then the surest way.
        """
        translator = self.translator(ids)
        ways = (
            (number, found)
            for source in sources
            for number, relation in enumerate(_RELATIONS)
            if (found := translator.translate(iri, source, target, relations=(relation,))) is not None
        )
        return min(ways, key=lambda way: (-way[1].trust, way[0], -way[1].confidence), default=(0, None))[1]

    def refuses(self, translation: Translation) -> bool:
        """Return True if several steps together are not certain enough."""
        return len(translation.steps) > 1 and translation.confidence < self._policy.threshold

    def doubtful(self, iri: str) -> float | None:
        """Return the confidence of the best mapping of a term that is not accepted; None if there is none."""
        return self._doubtful.get(iri)

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
        # A term is one of the profile's own ontology, whoever else declares it too.
        declaring = self._declaring(iri)
        sources = [self._source] if self._source in declaring or not declaring else declaring
        found = self._mappings.translate(iri, sources, self._target.id, self._ids)
        covered = found is not None and found.iri in self._target.terms
        if found is None or not covered or self._mappings.refuses(found):
            doubtful = found.confidence if found is not None and covered else self._mappings.doubtful(iri)
            rule, other = (UNCOVERED, self._target.id) if doubtful is None else (LOW_CONFIDENCE, doubtful)
            self.broken.append(Violation.of(rule, path, iri, other))
            return iri
        self.used[iri] = UsedMapping(iri, found)
        return found.iri
