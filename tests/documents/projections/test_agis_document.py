"""A service as an AGIS document: nothing that the document can express is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.cases import rows
from tests.checks.evolution.contracts import BOOK as CONTRACTS_BOOK
from tests.checks.lint.contexts import CONTEXT
from tests.documents.agis_documents import booking, documents
from tests.documents.openapi.notes_api import described
from tests.documents.openapi.reading import OK, document, read
from tests.process import HOTEL
from tests.service import echo, make_endpoint
from tests.service_strategy import services

from bespeak.checks.lint.document import check_text
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.agis.canonical import canonical, write_yaml
from bespeak.documents.agis.document import agis_service, check_structure, read_agis
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.openapi.facade import import_description
from bespeak.documents.projections.agis_document import complete_agis, project_agis, project_summary
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import SyntaxFault, Tree
from bespeak.text.source.yaml_tree import parse_yaml


def tree_of(data: dict[str, Any]) -> Tree:
    tree = parse_json(json.dumps(data), "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    return tree


def service_of(tree: Tree) -> Service:
    document, _ = read_agis(tree)
    assert document is not None
    return agis_service(document)


@given(documents())
@settings(max_examples=150)
def test_a_canonical_document_is_its_own_projection(data: dict[str, Any]) -> None:
    for entry in data["endpoints"]:  # a custom method says what kind of operation it is
        if entry["method"] == "TRIAGE":
            entry["semantic"].setdefault("capability", "transaction")
        if entry["input"].get("properties"):  # AGIS 7: an input says which parameters are required
            entry["input"].setdefault("required", [])
    projected = project_agis(service_of(tree_of(data)))
    assert projected == data
    assert list(projected) == list(canonical(projected))


def hotel() -> Service:
    deployment, findings = read_deployment(HOTEL)
    assert findings == []
    return deployment.service()


def promised(endpoint: Endpoint) -> Endpoint:
    """Return the contract of an endpoint without its handler, with all that its schemas may leave unsaid."""
    return replace(
        endpoint,
        handler=OpaqueHandler(type=""),
        location=None,
        input_schema={"$schema": DIALECT, "required": [], **endpoint.input_schema},
        output_schema={"$schema": DIALECT, **endpoint.output_schema},
    )


def test_round_trip_through_a_document_loses_only_handlers() -> None:
    before = hotel()
    text = write_yaml(project_agis(before))
    tree = parse_yaml(text, "hotel.agis")
    assert not isinstance(tree, SyntaxFault)
    assert {finding.rule for finding in check_structure(tree)} <= {"D127"}
    after = service_of(tree)
    assert len(before.endpoints) == 6
    assert list(map(promised, after.endpoints)) == list(map(promised, before.endpoints))
    assert after.identity.server_id == before.identity.server_id
    assert (after.identity.operator, after.identity.contact) == (before.identity.operator, before.identity.contact)


@pytest.mark.requirement("AGIS-7-2")
def test_an_input_says_that_nothing_is_required() -> None:
    service = hotel()
    silent = {"type": "object", "properties": {"beds": {"type": "integer"}}}
    endpoint = replace(service.endpoints[0], input_schema=silent)
    [entry] = project_agis(replace(service, endpoints=(endpoint,)))["endpoints"]
    assert entry["input"] == {**silent, "required": []}
    entries = project_agis(service)["endpoints"]
    assert all("required" in each["input"] for each in entries if each["input"].get("properties"))


def test_the_vocabulary_is_the_verbs_in_use() -> None:
    service = service_of(tree_of(booking()))
    assert service.vocabulary is not None
    declared = replace(service.vocabulary, declared_verbs=("FIND", "BOOK"))
    assert project_agis(replace(service, vocabulary=declared))["vocabulary"]["declared_verbs"] == ["BOOK"]
    assert project_agis(replace(service, vocabulary=None))["vocabulary"] == {"declared_verbs": ["BOOK"]}


def test_built_in_endpoints_are_left_out_and_missing_names_come_from_the_id() -> None:
    service = service_of(tree_of(booking()))
    builtin = replace(service.endpoints[0], method="QUERY", path="/", builtin=True)
    document = project_agis(replace(service, endpoints=(*service.endpoints, builtin)))
    assert [entry["method"] for entry in document["endpoints"]] == ["BOOK"]
    bare = replace(service, agtp=None, identity=replace(service.identity, name="", server_id="::1"))
    document = project_agis(bare)
    assert (document["service"], document["agtp"]) == ("::1", "agtp://[::1]")


def test_a_category_that_agis_lacks_is_written_as_the_nearest_and_kept() -> None:
    service = service_of(tree_of(booking()))
    (endpoint,) = service.endpoints
    for capability in ("creation", "mechanics", "domain_spanning"):
        changed = replace(endpoint, semantic=replace(endpoint.semantic, capability=capability))
        document = project_agis(replace(service, endpoints=(changed,)))
        assert check_structure(tree_of(document)) == []
        assert service_of(tree_of(document)).endpoints[0].semantic.capability == capability


@rows(
    "field, value",
    ("cost", {"tokens": 500, "USD": "0.02"}),
    *(("since", place) for place in ("rooms[].updated_at", "[].updated_at", "updated_at")),
    *(("confirm", value) for value in (True, False)),
)
def test_optional_field_survives_a_round_trip(field: str, value: object) -> None:
    data = booking()
    assert field not in project_agis(service_of(tree_of(data)))["endpoints"][0]
    data["endpoints"][0][field] = value
    document = project_agis(service_of(tree_of(data)))
    assert document["endpoints"][0][field] == value
    assert check_structure(tree_of(document)) == []


ROOT = Path(__file__).parents[3]
CATALOG = load_bundled()


def completed(service: Service) -> dict[str, Any]:
    return complete_agis(project_agis(service), CATALOG)


def offering(*endpoints: Endpoint) -> Service:
    return Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="c"), endpoints=endpoints)


def warnings(service: Service) -> list[str]:
    found = check_text(write_yaml(completed(service)), "exported.agis", CONTEXT).findings
    return [str(finding) for finding in found if finding.severity != "info"]


def imported(data: dict[str, Any]) -> Service:
    facades = import_description(read(data)[0]).facades
    identity = ServerIdentity(server_id="notes.example", operator="Acme", contact="https://notes.example", name="Notes")
    return Service(identity=identity, endpoints=tuple(facade.endpoint for facade in facades))


def test_the_hotel_is_exported_without_warnings() -> None:
    assert warnings(read_deployment(ROOT / "examples" / "hotel")[0].service()) == []


def test_an_imported_contract_is_exported_without_warnings() -> None:
    assert warnings(imported(described("https://notes.example"))) == []
    optional = {"parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}], "responses": OK}
    paths = {"/bulk-delete-users": {"post": optional}, "/found": {"get": optional}, "/users/{id}/sending": {"post": OK}}
    service = imported(document(paths))
    assert warnings(service) == []
    assert str(service.endpoints[0]) == "REMOVE /users"


def test_what_the_service_says_is_kept() -> None:
    semantic = replace(CONTRACTS_BOOK.semantic, confidence_guidance=0.95, capability="creation")
    said = completed(imported(described("https://notes.example")))
    assert (said["version"], said["vocabulary"]["domain"]) == ("0.0.0", "notes")
    service = replace(offering(replace(CONTRACTS_BOOK, semantic=semantic)), description="Rooms.")
    document = completed(replace(service, document_version="2.1.0"))
    assert (document["description"], document["version"]) == ("Rooms.", "2.1.0")
    block = document["endpoints"][0]["semantic"]
    assert (block["confidence_guidance"], block["capability"]) == (0.95, "transaction")


def test_guidance_follows_the_impact() -> None:
    guidance = {}
    for impact in ("informational", "reversible", "irreversible"):
        semantic = replace(CONTRACTS_BOOK.semantic, impact=impact, confidence=0.1)
        (entry,) = completed(offering(replace(CONTRACTS_BOOK, semantic=semantic)))["endpoints"]
        guidance[impact] = entry["semantic"]["confidence_guidance"]
    assert guidance == {"informational": 0.5, "reversible": 0.7, "irreversible": 0.85}


def test_tools_that_would_share_a_name_get_one_each() -> None:
    paths = ("/room", "/room/{room_id}", "/room/{room_id}/key", "/room/key")
    service = offering(*(replace(CONTRACTS_BOOK, path=path) for path in paths))
    names = [entry["semantic"].get("mcp_tool_name") for entry in completed(service)["endpoints"]]
    assert names == [None, "book_room_by_room_id", "book_room_key", "book_room_key_2"]


@settings(max_examples=30, deadline=None)
@given(services())
def test_any_service_is_completed_and_nothing_is_lost(service: Service) -> None:
    before, after = project_agis(service), completed(service)
    endpoints = [[(one["method"], one["path"]) for one in each.pop("endpoints")] for each in (before, after)]
    del before["vocabulary"]
    assert before.items() <= after.items()
    assert endpoints[0] == endpoints[1]


FIND = make_endpoint("FIND", "/rooms", echo, capability="discovery")
BOOK = make_endpoint("BOOK", "/room", echo, capability="creation", impact="irreversible")
STAYS = DataClass(name="stays", description="Who stayed when", sensitivity="high", requires_authorization=True)


def summary(*endpoints: Endpoint, settings: HttpSettings | None = None, **fields: Any) -> dict[str, Any]:
    identity = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name="Acme Rooms")
    service = Service(identity=identity, **fields)
    return project_summary(service, endpoints or (FIND, BOOK), settings or HttpSettings(), version="1.2.0")


@pytest.mark.requirement("AGIS-11.1-2")
def test_every_field_of_the_draft_is_present() -> None:
    found = summary(
        vocabulary=Vocabulary(domain="hospitality", namespace="acme", version="0.9"),
        data_manifest=DataManifest(available_data=(STAYS,), pre_auth_discovery=True),
        settings=HttpSettings(url="https://rooms.example/api", related_services=("agtp://pay.example",)),
    )
    assert found == {
        "agis": "1.0",
        "service": "Acme Rooms",
        "agtp": "agtp://rooms.example",
        "agis_document": "https://rooms.example/api/",
        "methods": ["FIND", "BOOK"],
        "domain": "hospitality",
        "namespace": "acme",
        "negotiable": False,
        "capability_summary": ["discovery", "transaction"],
        "data_classes": ["stays"],
        "pre_auth_discovery": True,
        "version": "1.2.0",
        "interaction_protocols": ["request", "query"],
        "related_services": ["agtp://pay.example"],
    }


@pytest.mark.requirement("AGIS-11.1-2")
def test_unknown_values_are_null_and_internal_endpoints_left_out() -> None:
    found = summary()
    assert (found["domain"], found["namespace"]) == (None, None)
    assert (found["data_classes"], found["pre_auth_discovery"]) == ([], False)
    assert found["agis_document"] == found["agtp"] == "agtp://rooms.example"
    found = summary(replace(BOOK, internal=True), replace(FIND, method="DISCOVER", builtin=True), FIND)
    assert (found["methods"], found["capability_summary"]) == (["FIND"], ["discovery"])


@pytest.mark.requirement("AGIS-11.1-4")
@pytest.mark.parametrize(("before", "classes"), [(True, ["stays"]), (None, ["stays"]), (False, [])])
def test_classes_are_named_unless_callers_need_credentials(before: bool | None, classes: list[str]) -> None:
    found = summary(data_manifest=DataManifest(available_data=(STAYS,), pre_auth_discovery=before))
    assert found["data_classes"] == classes
    assert "high" not in str(found)
    assert "Who stayed" not in str(found)


@rows(
    "endpoint, fields, protocols",
    (BOOK, {}, ["request"]),
    (replace(BOOK, confirm=True), {}, ["request", "confirm"]),
    (BOOK, {"policies": Policies(confirm_irreversible=True)}, ["request", "confirm"]),
    (replace(BOOK, confirm=False), {"policies": Policies(confirm_irreversible=True)}, ["request"]),
    (BOOK, {"vocabulary": Vocabulary(negotiable=True)}, ["request", "negotiate"]),
    (FIND, {}, ["request", "query"]),
)
def test_supported_interaction_modes_are_listed(endpoint: Endpoint, fields: Any, protocols: list[str]) -> None:
    assert summary(endpoint, **fields)["interaction_protocols"] == protocols
