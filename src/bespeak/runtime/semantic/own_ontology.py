"""The vocabulary of a service itself: a capability and an intent for each endpoint, as it publishes them."""

from __future__ import annotations

from collections.abc import Iterable

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.ontology.namespace import Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.term import Term
from bespeak.contract.service import Service
from bespeak.documents.projections.jsonld import base_of, capability_iri, intent_iri


def own_ontology(service: Service, endpoints: Iterable[Endpoint], version: str, namespace: Namespace) -> Ontology:
    """Return the vocabulary of a service in the version of its manifest."""
    terms: dict[str, Term] = {}
    for endpoint in endpoints:
        if endpoint.is_listed:
            capability, intent = capability_iri(service, endpoint), intent_iri(service, endpoint)
            # What an endpoint does is a case of what its concepts mean.
            terms[capability] = Term(
                iri=capability,
                kind="individual",
                types=(namespace("Capability"),),
                parents=endpoint.semantic.concepts,
            )
            terms[intent] = Term(iri=intent, kind="individual", types=(namespace("Intent"),), requires=(capability,))
    return Ontology(id=base_of(service), version=version, terms=terms)


def own_profile(service: Service, endpoint: Endpoint, ontology: Ontology) -> SemanticProfile:
    """Return the profile with which an endpoint can be called in the vocabulary of its service."""
    return SemanticProfile(
        ontology_id=ontology.id,
        ontology_version=ontology.version,
        capability_refs=(capability_iri(service, endpoint),),
        intent_ref=intent_iri(service, endpoint),
    )
