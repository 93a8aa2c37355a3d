"""The capabilities and intents of a service as JSON-LD in the terms of the IoA draft (IoA 5, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from bespeak.contract.core_ontology import DEFAULT, OWL, RDFS, is_iri
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import capability_id
from bespeak.contract.service import Service
from bespeak.extensions.semantics.settings import semantic_settings
from bespeak.extensions.semantics.terms import parse_version

_BODY: Final = "application/json"  # media type of what endpoints take and return; the schemas stand beside it
_OWN: Final = "own"  # prefix of the service's own names


def project_jsonld(service: Service, endpoints: Iterable[Endpoint], *, version: str) -> dict[str, Any]:
    """Build the document: an ontology, its agent, and a capability and an intent for each listed endpoint.

    The IRIs depend on the service and on method and path of the endpoint alone, so no other endpoint changes them.
    """
    names = base_of(service)
    settings = semantic_settings(service)
    namespace = DEFAULT if settings is None else settings.namespace
    listed = [service.published(endpoint) for endpoint in endpoints if endpoint.is_listed]
    domain: dict[str, Any] | None = None
    said = service.vocabulary.domain if service.vocabulary is not None else None
    if said and said.strip():  # an IRI stays as it is, a word becomes a name of the service
        word = f"{_OWN}:domain/{quote(said.strip().lower()[:200], safe='')}"
        domain = {"id": said if "/" in said and is_iri(said) else word, "type": "ioa:Domain", "label": said}
    agent = f"{_OWN}:agent"
    graph: list[dict[str, Any]] = [
        {"id": names, "type": f"{OWL}Ontology", "versionInfo": own_version(service, version)},
        _said(
            id=agent,
            type="ioa:Agent",
            label=service.identity.name or service.identity.server_id,
            comment=service.description.strip() or None,
            hasCapability=[_name("capability", endpoint) for endpoint in listed],
        ),
    ]
    if domain is not None:
        graph.append(domain)
    for endpoint in listed:
        graph += [_capability(endpoint, agent), _intent(endpoint, domain)]
    return {
        "@context": [
            namespace.context,
            {
                _OWN: names,
                "comment": f"{RDFS}comment",
                "versionInfo": f"{OWL}versionInfo",
                "subClassOf": {"@id": f"{RDFS}subClassOf", "@type": "@id"},
            },
        ],
        "@graph": graph,
    }


def own_version(service: Service, revision: str) -> str:
    """Return the version of the service's own names: of its vocabulary, else of its contract, if that compares.

    A `revision` made from the content compares with no other one.
    """
    declared = service.vocabulary.version if service.vocabulary is not None else None
    return next((one for one in (declared, service.document_version) if one and parse_version(one)), revision)


def base_of(service: Service) -> str:
    """Return the IRI that the service's own names begin with: a setting, else its AGTP address."""
    settings = semantic_settings(service)
    if settings is not None and settings.names:
        return settings.names
    base = f"{service.address.rstrip('/')}/"
    return base if is_iri(base) else f"urn:agtp:{quote(service.identity.server_id, safe='')}/"


def capability_iri(service: Service, endpoint: Endpoint) -> str:
    return f"{base_of(service)}capability/{capability_id(endpoint)}"


def intent_iri(service: Service, endpoint: Endpoint) -> str:
    return f"{base_of(service)}intent/{capability_id(endpoint)}"


def _name(kind: str, endpoint: Endpoint) -> str:
    return f"{_OWN}:{kind}/{capability_id(endpoint)}"


def _capability(endpoint: Endpoint, agent: str) -> dict[str, Any]:
    return _said(
        id=_name("capability", endpoint),
        type="ioa:Capability",
        label=f"{endpoint.method} {endpoint.path}",
        comment=endpoint.description or None,
        subClassOf=[one for one in endpoint.semantic.concepts if is_iri(one)] or None,
        inputs=_constraints(endpoint.input_schema),
        outputs=_constraints(endpoint.output_schema),
        providedBy=agent,
    )


def _intent(endpoint: Endpoint, domain: Mapping[str, Any] | None) -> dict[str, Any]:
    semantic = endpoint.semantic
    return _said(
        id=_name("intent", endpoint),
        type="ioa:Intent",
        label=semantic.intent or endpoint.description,
        comment=semantic.outcome or None,
        requiresCapability=_name("capability", endpoint),
        appliesToDomain=domain["id"] if domain is not None else None,
    )


def _constraints(schema: Mapping[str, Any]) -> list[Any]:
    """Return the media type and the JSON Schema, as a literal that RDF keeps as JSON."""
    return [_BODY, {"@type": "@json", "@value": dict(schema)}]


def _said(**node: Any) -> dict[str, Any]:
    return {name: value for name, value in node.items() if value is not None}
