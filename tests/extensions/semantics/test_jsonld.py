"""Endpoints as capabilities and intents: stable IRIs, constraints from schemas, readable as a registration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from tests.extensions.semantics.ontology.oracle import violated
from tests.service import echo, make_endpoint
from tests.service_strategy import services

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import ServerIdentity, Service, Vocabulary
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.jsonld import base_of, capability_iri, intent_iri, project_jsonld
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Meanings

FIND = make_endpoint("FIND", "/rooms/{room_id}", echo)
BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)
STAY = "https://ex.org/onto/hotel#Stay"


def service(**fields: Any) -> Service:
    identity = ServerIdentity(server_id=fields.pop("server_id", "rooms.example"), operator="Acme", contact="")
    return Service(identity=identity, **fields)


def project(*endpoints: Endpoint, **fields: Any) -> dict[str, Any]:
    document = project_jsonld(service(**fields), endpoints or (FIND, BOOK, HIDDEN), version="1.2.0")
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return found


def nodes(document: dict[str, Any]) -> dict[str, Any]:
    return {node["id"]: node for node in document["@graph"]}


@pytest.mark.requirement("IOA-8-1")
def test_each_endpoint_is_a_capability_and_an_intent() -> None:
    found = nodes(project(vocabulary=Vocabulary(domain="Hospitality")))
    capability, intent = found["own:capability/book_room"], found["own:intent/book_room"]
    assert capability["inputs"] == ["application/json", {"@type": "@json", "@value": dict(BOOK.input_schema)}]
    assert capability["providedBy"] == "own:agent"
    assert intent["requiresCapability"] == "own:capability/book_room"
    assert intent["appliesToDomain"] == "own:domain/hospitality"
    assert found["own:domain/hospitality"]["type"] == "ioa:Domain"
    assert found["own:agent"]["hasCapability"] == ["own:capability/find_rooms_by_room_id", "own:capability/book_room"]
    assert "ledger" not in str(found)


def test_concepts_stand_above_the_capability() -> None:
    mapped = replace(BOOK, semantic=replace(BOOK.semantic, concepts=(STAY, "not an iri")))
    document = project(mapped)
    assert nodes(document)["own:capability/book_room"]["subClassOf"] == [STAY]
    ontology, findings = read_ontology(msgspec.json.encode(document), "own.jsonld")
    assert ontology is not None
    assert findings == []
    meanings = Meanings([ontology])
    assert meanings.subsumes(STAY, capability_iri(service(), BOOK))
    assert meanings.requires[intent_iri(service(), BOOK)] == {capability_iri(service(), BOOK)}


def test_document_fits_its_shapes_and_iris_do_not_depend_on_other_endpoints() -> None:
    alone, together = nodes(project(BOOK)), nodes(project(FIND, BOOK))
    assert alone["own:intent/book_room"] == together["own:intent/book_room"]
    named = replace(BOOK, semantic=replace(BOOK.semantic, mcp_tool_name="reserve"))
    assert capability_iri(service(), named) == capability_iri(service(), BOOK)
    domain = "https://ex.org/onto/hotel#Hospitality"
    assert nodes(project(vocabulary=Vocabulary(domain=domain)))["own:intent/book_room"]["appliesToDomain"] == domain
    assert violated(project(), registration=True) == set()


def test_base_is_a_setting_the_address_or_a_urn() -> None:
    assert base_of(service()) == "agtp://rooms.example/"
    assert base_of(service(server_id="::1")) == "agtp://[::1]/"
    assert base_of(service(server_id="my rooms")) == "urn:agtp:my%20rooms/"
    own = SemanticSettings(names="https://acme.example/rooms/", base="https://acme.example/meaning/")
    assert base_of(service(semantic=own)) == "https://acme.example/rooms/"
    context = project(semantic=own)["@context"]
    assert (context[0], context[1]["own"]) == ("https://acme.example/meaning/ctx", "https://acme.example/rooms/")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(services())
def test_document_of_any_service_is_a_valid_registration(any_service: Service) -> None:
    document = msgspec.json.decode(msgspec.json.encode(project_jsonld(any_service, any_service.endpoints, version="1")))
    registration = EnvelopeReader().parse_registration(document)
    listed = [endpoint for endpoint in any_service.endpoints if endpoint.is_listed]
    if not listed:
        assert [one.rule for one in registration.violations] == ["I211"]
        return
    assert registration.violations == ()
    for term, endpoint in zip(registration.capabilities, listed, strict=True):
        assert term.iri == capability_iri(any_service, endpoint)
        assert msgspec.json.decode(term.inputs[1]) == endpoint.input_schema
        assert msgspec.json.decode(term.outputs[1]) == endpoint.output_schema
        assert term.parents == endpoint.semantic.concepts
