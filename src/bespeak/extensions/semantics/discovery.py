"""Discovery by meaning: capabilities closed over subclasses and accepted mappings, inputs and outputs (IoA 8, 13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.semantics.alignment.signals import behavioral
from bespeak.extensions.semantics.alignment.translation import Translation
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.knowledge import Snapshot
from bespeak.extensions.semantics.negotiation import WIDER
from bespeak.extensions.semantics.profile import SemanticProfile
from bespeak.extensions.semantics.terms import Term
from bespeak.protocol.exchange.principal import Principal

_LEAST_BEHAVIOR: Final = 0.3  # lowest agreement of inputs and outputs


class DiscoveryQuery(msgspec.Struct, frozen=True):
    text: str  # IRI of a capability, or its label
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class FoundEndpoint(msgspec.Struct, frozen=True):
    endpoint: Endpoint
    capability: str
    score: float
    translation: Translation | None = None


class MeaningIndex:
    """Endpoints of one route table by the capabilities of one snapshot."""

    def __init__(self, endpoints: Iterable[Endpoint], snapshot: Snapshot, sensitive: Collection[str] = ()) -> None:
        """Index endpoints; `sensitive` are the concepts that only callers with the scopes of an endpoint learn of."""
        self.snapshot = snapshot
        self._sensitive = sensitive
        self._providers: dict[str, list[Endpoint]] = {}
        for endpoint in endpoints:
            for concept in endpoint.semantic.concepts if endpoint.is_listed else ():
                self._providers.setdefault(concept, []).append(endpoint)

    def find(self, wanted: DiscoveryQuery, principal: Principal) -> list[FoundEndpoint]:
        """Return the endpoints that provide what is wanted, the best first, each once."""
        best: dict[tuple[str, str], FoundEndpoint] = {}
        for iri, score in self.snapshot.names.find(wanted.text):
            for found in self._providing(iri, score):
                key = found.endpoint.key
                fits = self._fits(found, wanted) and self.shows(found.endpoint, principal)
                if fits and (key not in best or best[key].score < found.score):
                    best[key] = found
        return sorted(best.values(), key=lambda one: (-one.score, one.endpoint.key))

    def shows(self, endpoint: Endpoint, principal: Principal) -> bool:
        """Return False for a sensitive capability whose scopes the caller does not have."""
        if not any(concept in self._sensitive for concept in endpoint.semantic.concepts):
            return True
        return principal.agent_id is not None and not principal.scopes.missing(list(endpoint.required_scopes))

    def knows(self, concept: str, principal: Principal) -> bool:
        """Return True if a caller may know that a sensitive concept is provided here."""
        return any(self.shows(endpoint, principal) for endpoint in self._providers.get(concept, ()))

    def document(self, found: FoundEndpoint) -> dict[str, Any]:
        """Return a candidate with the least that lets the caller understand and call it."""
        endpoint = found.endpoint
        candidate: dict[str, Any] = {
            "kind": "endpoint",
            "method": endpoint.method,
            "path": endpoint.path,
            "description": endpoint.description,
            "relevance": round(found.score, 4),
            "match": "direct" if found.translation is None else "mapped",
            # A name that agrees in part, or a capability that is more general, is not as sure as its mapping.
            "confidence": round(found.score, 4),
        }
        profile = self._profile(found)
        return candidate if profile is None else {**candidate, "semantic": profile}

    def _profile(self, found: FoundEndpoint) -> dict[str, Any] | None:
        """Write the profile with which the endpoint can be called, as in Figure 7; it has no context."""
        intents = self.snapshot.names.intents
        above = self.snapshot.meanings.ancestors(found.capability)
        intent = next((intents[one] for one in above if one in intents), None)
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

    def _providing(self, wanted: str, score: float) -> Iterator[FoundEndpoint]:
        meanings, mappings = self.snapshot.meanings, self.snapshot.mappings
        sources, usable = self.snapshot.declaring([wanted]), list(self.snapshot.alignments)
        for concept, endpoints in self._providers.items():
            share, translation = self._share(wanted, concept), None
            if share is None:
                for target in self.snapshot.declaring([concept]):
                    translation = mappings.translate(wanted, sources, target, usable)
                    if translation is not None and not mappings.refuses(translation):
                        near = self._share(translation.iri, concept)
                        share = None if near is None else near * translation.confidence
                    if share is not None:
                        break
            if share is not None and concept in meanings:
                yield from (FoundEndpoint(one, concept, score * share, translation) for one in endpoints)

    def _share(self, wanted: str, concept: str) -> float | None:
        meanings = self.snapshot.meanings
        if meanings.subsumes(wanted, concept):
            return 1.0
        return WIDER if meanings.subsumes(concept, wanted) else None

    def _fits(self, found: FoundEndpoint, wanted: DiscoveryQuery) -> bool:
        """Compare inputs and outputs with those of the capability; what is not declared does not exclude."""
        term = self.snapshot.names.terms.get(found.capability)
        if term is None or not (wanted.inputs or wanted.outputs):
            return True
        agreement = behavioral(Term(iri="", kind="individual", inputs=wanted.inputs, outputs=wanted.outputs), term)
        return agreement is None or agreement >= _LEAST_BEHAVIOR


def read_wanted(criteria: Any) -> DiscoveryQuery | None:
    """Read the criteria of DISCOVER: a text, or an object with `capability` and perhaps `inputs` and `outputs`."""
    if isinstance(criteria, str):
        return DiscoveryQuery(criteria)
    if not isinstance(criteria, Mapping) or not isinstance(criteria.get("capability"), str):
        return None
    return DiscoveryQuery(criteria["capability"], _texts(criteria.get("inputs")), _texts(criteria.get("outputs")))


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(one[:1_000] for one in values[:20] if isinstance(one, str))
