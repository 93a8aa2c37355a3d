"""Discovery by meaning: capabilities closed over subclasses and accepted mappings, then inputs, outputs and labels.

Answers have what a caller needs to call, and no more (IoA 8, 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.checks.alignment.behavioral import behavioral
from bespeak.checks.alignment.translation import Translation
from bespeak.checks.alignment.words import words_of
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.term import Term
from bespeak.documents.envelope.writer import write_envelope
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.semantic.snapshot import Snapshot

_LEAST_LABEL: Final = 0.6
"""Lowest share of common words of a label that names a capability."""
_LEAST_BEHAVIOR: Final = 0.3
"""Lowest agreement of inputs and outputs."""
_WIDER: Final = 0.9
"""Score of a capability that is more general than the wanted one."""
_MOST_NAMED: Final = 5
"""Most capabilities that a label may name."""


class Wanted(msgspec.Struct, frozen=True):
    """What a caller looks for."""

    text: str
    """IRI of a capability, or its label."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """An endpoint that provides what is wanted."""

    endpoint: Endpoint
    capability: str
    score: float
    translation: Translation | None = None


class MeaningIndex:
    """Endpoints of one route table by the capabilities of one snapshot."""

    def __init__(self, endpoints: Iterable[Endpoint], snapshot: Snapshot, sensitive: Sequence[str] = ()) -> None:
        self.snapshot = snapshot
        self._sensitive = sensitive
        self._providers: dict[str, list[Endpoint]] = {}
        for endpoint in endpoints:
            for concept in endpoint.semantic.concepts if endpoint.is_listed else ():
                self._providers.setdefault(concept, []).append(endpoint)
        self._terms = {
            iri: term
            for versions in snapshot.ontologies.values()
            for iri, term in versions[-1].terms.items()
            if iri in snapshot.meanings.capabilities
        }
        self._labels: dict[tuple[str, ...], list[str]] = {}
        for iri, term in self._terms.items():
            names = (*term.labels, *(one.text for one in term.synonyms), *term.abbreviations, term.local_name)
            for words in {words_of(name) for name in names}:
                self._labels.setdefault(words, []).append(iri)
        self._intents: dict[str, str] = {}
        for intent in sorted(snapshot.meanings.intents, reverse=True):
            self._intents |= dict.fromkeys(snapshot.meanings.requires.get(intent, ()), intent)

    def find(self, wanted: Wanted, principal: Principal) -> list[Found]:
        """Return the endpoints that provide what is wanted, the best first, each once."""
        best: dict[tuple[str, str], Found] = {}
        for iri, score in self._named(wanted.text):
            for found in self._providing(iri, score):
                key = found.endpoint.key
                fits = self._fits(found, wanted) and self.shows(found.endpoint, principal)
                if fits and (key not in best or best[key].score < found.score):
                    best[key] = found
        return sorted(best.values(), key=lambda one: (-one.score, one.endpoint.key))

    def shows(self, endpoint: Endpoint, principal: Principal) -> bool:
        """Return False for a sensitive capability whose scopes the caller does not have."""
        meanings = self.snapshot.meanings
        concepts = endpoint.semantic.concepts
        sensitive = any(meanings.subsumes(one, concept) for one in self._sensitive for concept in concepts)
        if not sensitive:
            return True
        return principal.agent_id is not None and not principal.scopes.missing(list(endpoint.required_scopes))

    def document(self, found: Found) -> dict[str, Any]:
        """Return a candidate with the least that lets the caller understand and call it."""
        endpoint, translation = found.endpoint, found.translation
        candidate: dict[str, Any] = {
            "kind": "endpoint",
            "method": endpoint.method,
            "path": endpoint.path,
            "description": endpoint.description,
            "relevance": round(found.score, 4),
            "match": "direct" if translation is None else "mapped",
            "confidence": 1.0 if translation is None else round(translation.confidence, 4),
        }
        profile = self._profile(found)
        return candidate if profile is None else {**candidate, "semantic": profile}

    def _profile(self, found: Found) -> dict[str, Any] | None:
        """Write the profile with which the endpoint can be called, as in Figure 7; it has no context."""
        intent = next((self._intents[one] for one in self._above(found.capability) if one in self._intents), None)
        declaring = self.snapshot.declaring([found.capability])
        ontology = self.snapshot.latest(declaring[0]) if declaring else None
        if intent is None or ontology is None:
            return None
        steps = () if found.translation is None else found.translation.steps
        profile = SemanticProfile(
            ontology_id=ontology.id,
            ontology_version=ontology.version,
            capability_refs=(found.capability,),
            intent_ref=intent,
            alignment_refs=tuple(dict.fromkeys(step.alignment for step in steps)),
        )
        return write_envelope(profile, namespace=self.snapshot.namespace)

    def _named(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield the capabilities that a text names, with the share of its words that agree."""
        if text in self._terms:
            yield text, 1.0
            return
        words = set(words_of(text[:200]))
        scored = []
        for label, iris in self._labels.items():
            both = len(words & set(label))
            share = both / len(words | set(label)) if both else 0.0
            if share >= _LEAST_LABEL:
                scored += [(share, iri) for iri in iris]
        for share, iri in sorted(scored, key=lambda one: (-one[0], one[1]))[:_MOST_NAMED]:
            yield iri, share

    def _providing(self, wanted: str, score: float) -> Iterator[Found]:
        meanings, mappings = self.snapshot.meanings, self.snapshot.mappings
        for concept, endpoints in self._providers.items():
            share, translation = self._share(wanted, concept), None
            if share is None:
                for target in self.snapshot.declaring([concept]):
                    translator = mappings.translator(list(self.snapshot.alignments))
                    translation = translator.translate(wanted, target, relations=("equivalent", "broader"))
                    if translation is not None and not mappings.refuses(translation):
                        near = self._share(translation.iri, concept)
                        share = None if near is None else near * translation.confidence
                    if share is not None:
                        break
            if share is not None and concept in meanings:
                yield from (Found(one, concept, score * share, translation) for one in endpoints)

    def _share(self, wanted: str, concept: str) -> float | None:
        meanings = self.snapshot.meanings
        if meanings.subsumes(wanted, concept):
            return 1.0
        return _WIDER if meanings.subsumes(concept, wanted) else None

    def _above(self, iri: str) -> Iterator[str]:
        return self.snapshot.meanings.ancestors(iri)

    def _fits(self, found: Found, wanted: Wanted) -> bool:
        """Compare inputs and outputs with those of the capability; what is not declared does not exclude."""
        term = self._terms.get(found.capability)
        if term is None or not (wanted.inputs or wanted.outputs):
            return True
        asked = Term(iri="", kind="individual", inputs=wanted.inputs, outputs=wanted.outputs)
        agreement = behavioral(asked, term)
        return agreement is None or agreement >= _LEAST_BEHAVIOR


def read_wanted(criteria: Any) -> Wanted | None:
    """Read the criteria of DISCOVER: a text, or an object with `capability` and perhaps `inputs` and `outputs`."""
    if isinstance(criteria, str):
        return Wanted(criteria)
    if not isinstance(criteria, Mapping) or not isinstance(criteria.get("capability"), str):
        return None
    return Wanted(criteria["capability"], _texts(criteria.get("inputs")), _texts(criteria.get("outputs")))


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(one[:1_000] for one in values[:20] if isinstance(one, str))
