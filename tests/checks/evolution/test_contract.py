"""What a client can see, from a service and from a manifest."""

from __future__ import annotations

import msgspec
from tests.checks.evolution.contracts import BOOK

from bespeak.checks.evolution.contract_diff import Contract, diff_contracts, manifest_contract, service_contract
from bespeak.contract.policy import SERVER_ENDPOINTS, Policies, is_of_server
from bespeak.contract.service import ServerIdentity, Service, Vocabulary
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.projections.agtp_manifest import project_manifest
from bespeak.runtime.methods.builtin import builtin_endpoints

IDENTITY = ServerIdentity(server_id="rooms.example", operator="Rooms", contact="ops@rooms.example")


def test_a_service_and_its_manifest_are_one_contract() -> None:
    policies = Policies(wildcards_accepted=True)
    service = Service(identity=IDENTITY, endpoints=(BOOK,), policies=policies, document_version="1.2.0")
    raw = project_manifest(service, service.endpoints, policies, service.catalog, updated="2026-01-01")
    manifest, _ = parse_manifest(msgspec.json.encode(raw))
    assert manifest is not None
    assert diff_contracts(service_contract(service, policies), manifest_contract(manifest)) == []
    assert manifest_contract(manifest).version == "1.2.0"


def test_built_in_endpoints_are_marked_in_a_manifest() -> None:
    listed = [{"method": method, "path": path} for method, path in SERVER_ENDPOINTS]
    entries = [*listed, {"method": "BOOK", "path": "/"}]
    manifest, _ = parse_manifest(msgspec.json.encode({"endpoints": entries}))
    assert manifest is not None
    assert [endpoint.method for endpoint in manifest_contract(manifest).endpoints if not endpoint.builtin] == ["BOOK"]


def test_document_without_policies_has_none() -> None:
    service = Service(identity=IDENTITY, vocabulary=Vocabulary(version="1.0.0"))
    assert service_contract(service) == Contract(vocabulary=Vocabulary(version="1.0.0"), version="1.0.0")


def test_list_of_built_in_endpoints_is_complete() -> None:
    own = builtin_endpoints(negotiates=True)
    assert all(is_of_server(*endpoint.key, endpoint.namespace) for endpoint in own)
    assert {endpoint.key for endpoint in own} == {*SERVER_ENDPOINTS, ("QUERY", "/messages"), ("RESUME", "/")}


def test_messages_of_an_operator_are_part_of_the_contract() -> None:
    assert not is_of_server("QUERY", "/messages", "mail")
    assert not is_of_server("QUERY", "/messages", None)
