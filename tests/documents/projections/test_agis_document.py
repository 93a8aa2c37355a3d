"""A service as an AGIS document: nothing that the document can express is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.documents.agis_documents import booking, documents
from tests.process import HOTEL

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import Service
from bespeak.documents.agis.canonical import canonical, write_yaml
from bespeak.documents.agis.document import agis_service, read_agis
from bespeak.documents.agis.structure import check_structure
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.projections.agis_document import project_agis
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


def test_built_in_endpoints_are_left_out() -> None:
    service = service_of(tree_of(booking()))
    builtin = replace(service.endpoints[0], method="QUERY", path="/", builtin=True)
    document = project_agis(replace(service, endpoints=(*service.endpoints, builtin)))
    assert [entry["method"] for entry in document["endpoints"]] == ["BOOK"]


def test_a_service_without_an_address_or_a_name_gets_them_from_its_id() -> None:
    service = service_of(tree_of(booking()))
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


def test_cost_survives_a_round_trip() -> None:
    data = booking()
    data["endpoints"][0]["cost"] = {"tokens": 500, "USD": "0.02"}
    service = service_of(tree_of(data))
    assert project_agis(service)["endpoints"][0]["cost"] == {"tokens": 500, "USD": "0.02"}


@pytest.mark.parametrize("since", ["rooms[].updated_at", "[].updated_at", "updated_at"])
def test_since_survives_a_round_trip(since: str) -> None:
    data = booking()
    assert "since" not in project_agis(service_of(tree_of(data)))["endpoints"][0]
    data["endpoints"][0]["since"] = since
    document = project_agis(service_of(tree_of(data)))
    assert document["endpoints"][0]["since"] == since
    assert check_structure(tree_of(document)) == []


@pytest.mark.parametrize("confirm", [True, False])
def test_confirm_survives_a_round_trip(confirm: bool) -> None:
    data = booking()
    assert "confirm" not in project_agis(service_of(tree_of(data)))["endpoints"][0]
    data["endpoints"][0]["confirm"] = confirm
    document = project_agis(service_of(tree_of(data)))
    assert document["endpoints"][0]["confirm"] is confirm
    assert check_structure(tree_of(document)) == []
