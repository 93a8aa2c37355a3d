"""A document as a service: identity, custom verbs, no handlers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.documents.agis_documents import booking

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.service import Service
from bespeak.documents.agis.document import agis_service, host_of, read_agis
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import SyntaxFault


def service_of(data: dict[str, Any]) -> Service:
    tree = parse_json(json.dumps(data), "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    document, _ = read_agis(tree)
    assert document is not None
    return agis_service(document)


def test_the_identity_comes_from_the_address_and_the_name() -> None:
    service = service_of(booking() | {"operator": "Acme"})
    identity = service.identity
    assert (identity.server_id, identity.name, identity.operator) == ("rooms.acme.example", "Acme Rooms", "Acme")
    assert (service.agtp, service.document_version) == ("agtp://rooms.acme.example", "1.0.0")
    assert service.description == "Rooms for a night."
    assert service_of({"agtp": 5}).identity.server_id == "localhost"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("agtp://a.example", "a.example"),
        ("agtp://a.example:4480/x", "a.example"),
        ("agtp://[::1]:4480", "::1"),
        ("agtp://" + "0a" * 32 + "@a.example", "a.example"),
        ("http://a.example", None),
        ("agtp://", None),
    ],
)
def test_the_host_of_an_address(address: str, host: str | None) -> None:
    assert host_of(address) == host


def test_verbs_beyond_the_catalog_are_custom_methods_and_others_are_not() -> None:
    data = booking()
    (entry,) = data["endpoints"]
    bare = {**entry, "semantic": {key: entry["semantic"][key] for key in ("intent", "actor", "outcome")}}
    data["endpoints"] = [{**bare, "method": verb} for verb in ("BOOK", "ADMIT", "ADMIT", "GET", "book_it")]
    service = service_of(data)
    assert "ADMIT" not in load_bundled().names
    assert service.policies.methods.custom == ("ADMIT",)
    # What a custom method has no category for is the gravest one.
    assert [endpoint.semantic.capability for endpoint in service.endpoints[:2]] == ["", "transaction"]


def test_endpoints_of_a_conforming_document_lack_only_handlers() -> None:
    service = service_of(booking())
    findings = check_endpoint(service.endpoints[0], load_bundled(), service.policies)
    assert {finding.rule[0] for finding in findings if finding.severity == "error"} <= {"H"}
