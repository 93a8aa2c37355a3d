"""The semantic layer of a server: understands what calls mean before they run (IoA 7, 9)."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import Namespace
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.errors import ConfigError
from bespeak.extensions.semantics import negotiation
from bespeak.extensions.semantics.alignment.artifact import Trust
from bespeak.extensions.semantics.alignment.signals import behavioral
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.jsonld import base_of, capability_iri, intent_iri, own_version
from bespeak.extensions.semantics.knowledge import Knowledge, Snapshot
from bespeak.extensions.semantics.profile import SemanticProfile, Violation, judge
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Ontology, Term
from bespeak.extensions.semantics.translation import Translation
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.handling import RefusedError
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable

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
            share, translation = negotiation.share_of(wanted, concept, meanings), None
            if share is None:
                for target in self.snapshot.declaring([concept]):
                    translation = mappings.translate(wanted, sources, target, usable)
                    if translation is not None and not mappings.refuses(translation):
                        near = negotiation.share_of(translation.iri, concept, meanings)
                        share = None if near is None else near * translation.confidence
                    if share is not None:
                        break
            if share is not None and concept in meanings:
                yield from (FoundEndpoint(one, concept, score * share, translation) for one in endpoints)

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
    given = (criteria.get(name) for name in ("inputs", "outputs"))
    listed = (value if isinstance(value, list) else [value] for value in given)
    texts = (tuple(one[:1_000] for one in values[:20] if isinstance(one, str)) for values in listed)
    return DiscoveryQuery(criteria["capability"], *texts)


def own_ontology(service: Service, endpoints: Iterable[Endpoint], version: str, namespace: Namespace) -> Ontology:
    """Return the vocabulary of a service in the version of its manifest."""
    terms: dict[str, Term] = {}
    for endpoint in endpoints:
        if endpoint.is_listed:
            capability, intent = capability_iri(service, endpoint), intent_iri(service, endpoint)
            # What an endpoint does is a case of what its concepts mean.
            kinds, above = (namespace("Capability"),), endpoint.semantic.concepts
            terms[capability] = Term(iri=capability, kind="individual", types=kinds, parents=above)
            terms[intent] = Term(iri=intent, kind="individual", types=(namespace("Intent"),), requires=(capability,))
    return Ontology(id=base_of(service), version=own_version(service, version), terms=terms)


def own_profile(service: Service, endpoint: Endpoint, ontology: Ontology) -> SemanticProfile:
    return SemanticProfile(
        ontology_id=ontology.id,
        ontology_version=ontology.version,
        capability_refs=(capability_iri(service, endpoint),),
        intent_ref=intent_iri(service, endpoint),
    )


WITHHELD: Final = "a sensitive term"  # words in the place of a term that a caller may not know
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s'\"<>,;()]+")
MOST_OUTCOMES: Final = 1_024  # outcomes that are kept for repeated profiles

_encode = msgspec.json.Encoder(order="sorted").encode


class Meaning(msgspec.Struct, frozen=True):
    profile: SemanticProfile
    outcome: negotiation.SemanticOutcome

    @property
    def digest(self) -> str:
        return digest_of(self.profile)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers of the answer: a mapped call says so, with its confidence and the artifacts."""
        mapping = self.outcome.mapping
        return () if mapping is None else (("Semantic-Mapping", negotiation.write_mapping(mapping)),)

    @property
    def translates(self) -> bool:
        """True if the data of the call are in the words of the caller."""
        return self.outcome.data is not None

    def translate_output(self, output: Any, *, is_item: bool = False) -> Any:
        """Return an output, or one item of a stream, in the words of the caller. Raises RefusedError."""
        data = self.outcome.data
        if data is None:
            return output
        translated, faults = data.write_item(output) if is_item else data.write(output)
        if faults:
            raise RefusedError(refuse_output(faults))
        return translated

    @property
    def understood(self) -> SemanticProfile | None:
        return self.outcome.profile


def refuse_input(faults: list[Violation]) -> Refused:
    message, details = _name_faults(faults)
    advice = "Use members and values that the alignment maps, or a profile in a vocabulary of the service."
    return Refused(status.UNPROCESSABLE, "semantic-input-untranslated", f"{message}. {advice}", details)


def refuse_output(faults: list[Violation]) -> Refused:
    """Refuse to give an answer in other words: the call was carried out, and its mappings are at fault."""
    message, details = _name_faults(faults)
    said = f"The call was carried out, but its answer cannot be given in your vocabulary: {message}."
    return Refused(status.SERVER_ERROR, "semantic-output-untranslated", said, details)


def _name_faults(faults: list[Violation]) -> tuple[str, dict[str, Any]]:
    listed = [{name: getattr(one, name) for name in negotiation.SHOWN} for one in faults]
    return "; ".join(one.message for one in faults[:5]), {"violations": listed}


def digest_of(profile: SemanticProfile) -> str:
    """Return the SHA-256 of a profile, whatever notation it was read from."""
    return hashlib.sha256(_encode(profile)).hexdigest()


class _RegistryView:
    """What follows from one snapshot of the registry and one route table."""

    def __init__(self, registry: Snapshot, routes: RouteTable | None, sensitive: tuple[str, ...]) -> None:
        self.registry = registry
        self.routes = routes
        self.reader = EnvelopeReader(registry.namespace, registry.contexts)
        self.outcomes: dict[tuple[SemanticProfile, Any], negotiation.SemanticOutcome] = {}
        self.spoken: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.snapshot = registry
        endpoints = () if routes is None else tuple(routes.endpoints.values())
        if routes is not None:
            own = own_ontology(routes.service, endpoints, routes.publication.version, registry.namespace)
            self.snapshot = registry.with_own(own)
        self.concepts = tuple(sorted({one for endpoint in endpoints for one in endpoint.semantic.concepts}))
        # Only callers with the scopes of their endpoints learn of them: those that are named, and all below.
        self.sensitive = frozenset(one for one in self.concepts if registry.is_below(one, sensitive))
        self.endpoints = endpoints
        listed = () if routes is None else tuple(one for one in endpoints if one.is_listed)
        # Capabilities of all endpoints.
        self.provided = (*self.concepts, *(capability_iri(routes.service, one) for one in listed if routes is not None))

    @cached_property
    def index(self) -> MeaningIndex:
        return MeaningIndex(self.endpoints, self.registry, self.sensitive)

    @cached_property
    def whole(self) -> negotiation.ServiceOffer:
        """Offer of all listed endpoints that are not sensitive; without a service, what the ontologies declare."""
        if self.routes is None:
            return negotiation.ServiceOffer((), tuple(sorted(self.registry.meanings.capabilities)), whole=True)
        listed = [one for one in self.endpoints if one.is_listed and self.sensitive.isdisjoint(one.semantic.concepts)]
        own = tuple(capability_iri(self.routes.service, one) for one in listed)
        concepts = tuple(dict.fromkeys(concept for one in listed for concept in one.semantic.concepts))
        return negotiation.ServiceOffer((), concepts, own=own, whole=True)

    @property
    def is_current(self) -> bool:
        """False if the manifest has a new version, because agents have changed."""
        own = self.snapshot.own
        return (
            self.routes is None
            or own is None
            or own.version == own_version(self.routes.service, self.routes.publication.version)
        )


class SemanticLayer:
    """Judges envelopes. Everything is in memory, so that calls do not wait; the registry is followed."""

    def __init__(
        self, settings: SemanticSettings, routes: Callable[[], RouteTable] | None = None, trust: Trust | None = None
    ) -> None:
        """Create the layer; `routes` returns the current endpoints, None for a layer without a service.

        `trust` says whose signatures count; None if artifacts were verified when they were registered.
        """
        self.settings = settings
        self._routes: Callable[[], RouteTable | None] = routes or (lambda: None)
        self.negotiation = negotiation.SemanticNegotiation(settings)
        trust = trust or Trust()
        policy = msgspec.structs.replace(self.negotiation.mapping_policy, ranks=trust.ranks)
        self.knowledge = Knowledge(settings.namespace, policy, trust)
        self.follow, self.close = self.knowledge.follow, self.knowledge.close
        self.own: tuple[str, ...] = ()  # ontologies that the service uses itself; if empty, those of its concepts
        self._view: _RegistryView | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What is known now, with the vocabulary of the service itself."""
        return self.view.snapshot

    @property
    def view(self) -> _RegistryView:
        """What follows from the current registry and endpoints; outcomes of earlier ones are dropped."""
        view, routes = self._view, self._routes()
        if view is None or view.registry is not self.knowledge.snapshot or view.routes is not routes:
            self._view = view = _RegistryView(self.knowledge.snapshot, routes, self.settings.sensitive)
        return view

    def hides(self, iri: str) -> bool:
        """Return True for a sensitive term: one that is named, or stands below it."""
        return self.knowledge.snapshot.is_below(iri, self.settings.sensitive)

    def withhold(self, told: Any, principal: Principal) -> Any:
        """Return what a caller may be told: sensitive terms only if one of its endpoints provides them (IoA 13)."""
        if not self.settings.sensitive:
            return told
        if isinstance(told, str):

            def shown(found: re.Match[str]) -> str:
                bare = found[0].rstrip(".")
                known = not self.hides(bare) or self.view.index.knows(bare, principal)
                return found[0] if known else f"{WITHHELD}{found[0][len(bare) :]}"

            return _IRI.sub(shown, told)
        if isinstance(told, Mapping):
            return {name: self.withhold(value, principal) for name, value in told.items()}
        return [self.withhold(value, principal) for value in told] if isinstance(told, list | tuple) else told

    def seen_by(self, endpoint: Endpoint, principal: Principal) -> Endpoint:
        """Return an endpoint with the concepts that a caller may know of."""
        if not self.settings.sensitive or self.view.index.shows(endpoint, principal):
            return endpoint
        shown = tuple(one for one in endpoint.semantic.concepts if one not in self.view.sensitive)
        return dataclasses.replace(endpoint, semantic=dataclasses.replace(endpoint.semantic, concepts=shown))

    def requires(self, endpoint: Endpoint) -> bool:
        """Return True if a call of an endpoint must say what it means; built-in methods need not."""
        wanted = self.settings.required
        if wanted == "never" or endpoint.builtin:
            return False
        return wanted == "always" or endpoint.semantic.impact == "irreversible"

    @staticmethod
    def judges(route: Route) -> bool:
        """Return True if the meaning of a call decides: of an endpoint, or a built-in method that calls others."""
        return not route.builtin or route.composes or route.endpoint.passes_on

    def read(
        self, document: Any, endpoint: Endpoint | None = None
    ) -> tuple[SemanticProfile | None, negotiation.SemanticOutcome]:
        """Read an envelope and negotiate its profile. One that lacks a member is rejected whatever the policy says."""
        envelope = self.view.reader.parse(document)
        if envelope.violations or envelope.profile is None:
            verdict = judge(envelope.profile, self.snapshot.meanings, self.negotiation.policy, envelope.violations)
            explanation = tuple(f"{one.message}." for one in verdict.violations)
            return envelope.profile, negotiation.SemanticOutcome(match="none", explanation=explanation, verdict=verdict)
        return envelope.profile, self.negotiate(envelope.profile, endpoint)

    def negotiate(self, profile: SemanticProfile, endpoint: Endpoint | None = None) -> negotiation.SemanticOutcome:
        """Return what comes of a profile; a repeated one is looked up."""
        # What decides about an offer.
        traits: tuple[Any, ...] = ()
        if endpoint is not None:
            traits = (endpoint.key, endpoint.builtin, endpoint.semantic.concepts, endpoint.semantic.impact)
        key = (profile, traits)
        found = self.view.outcomes.get(key)
        if found is None:
            if not self.view.is_current:
                self._view = None
            view = self.view
            found = self.negotiation.negotiate(profile, self._offer(endpoint, view), view.snapshot)
            if len(view.outcomes) >= MOST_OUTCOMES:
                view.outcomes.pop(next(iter(view.outcomes)))
            view.outcomes[key] = found
        return found

    def _offer(self, endpoint: Endpoint | None, view: _RegistryView) -> negotiation.ServiceOffer:
        if endpoint is None:
            return msgspec.structs.replace(view.whole, spoken=self.spoken())
        concepts = endpoint.semantic.concepts
        # What a basic method such as EXECUTE calls is judged by itself.
        critical = endpoint.semantic.impact == "irreversible" and not (endpoint.is_basic or endpoint.passes_on)
        own = () if view.routes is None or endpoint.builtin else (capability_iri(view.routes.service, endpoint),)
        called = None if endpoint.builtin or endpoint.passes_on else endpoint
        spoken = self.spoken(concepts)
        return negotiation.ServiceOffer(
            spoken, concepts, critical, own, sensitive=view.sensitive, endpoint=called, elsewhere=view.provided
        )

    def restore(self, profile: Any) -> Meaning:
        """Return what a call means whose profile was kept as plain data."""
        read = msgspec.convert(profile, SemanticProfile)
        return Meaning(read, self.negotiate(read))

    def spoken(self, concepts: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the ontologies that the service uses itself: those of an endpoint's concepts, else of all endpoints.

        Every registered ontology counts if the service does not declare concepts; the core always does.
        """
        view = self.view
        if concepts not in view.spoken:
            snapshot = view.snapshot
            declared = snapshot.declaring(concepts) or snapshot.declaring(view.concepts)
            spoken = self.own or declared or tuple(sorted(view.registry.ontologies))
            own = () if snapshot.own is None else (snapshot.own.id,)
            view.spoken[concepts] = tuple(dict.fromkeys((*spoken, snapshot.namespace.core, *own)))
        return view.spoken[concepts]


def check_extra() -> None:
    if importlib.util.find_spec("pyld") is None or importlib.util.find_spec("pyoxigraph") is None:
        raise ConfigError("[semantic] needs its extra: pip install 'bespeak[semantic]'")
