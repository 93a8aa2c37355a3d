"""AGIS documents become the contract model, even with errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.agis_documents import booking, values

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.service import Service
from bespeak.documents.agis.document import AgisDocument, agis_service, host_of, read_agis
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import SyntaxFault, Tree
from bespeak.text.source.yaml_tree import parse_yaml


def read_tree(tree: Tree | SyntaxFault) -> tuple[AgisDocument, list[Diagnostic]]:
    assert isinstance(tree, Tree)
    document, findings = read_agis(tree)
    assert document is not None
    return document, findings


def read(data: Any) -> AgisDocument:
    return read_tree(parse_json(json.dumps(data), "menu.agis"))[0]


def test_every_field_arrives_in_the_model() -> None:
    data = booking() | {"operator": "Acme", "contact": "ops@acme.example"}
    data["vocabulary"] |= {"namespace": "acme", "version": "2", "negotiable": True}
    data["data_manifest"] = {
        "available_data": [{"class": "room", "description": "Rooms.", "formats": ["json"], "sensitivity": "low"}],
        "pre_auth_discovery": True,
    }
    data["endpoints"][0] |= {
        "description": "Book a room.",
        "namespace": "rooms",
        "required_scopes": ["booking:room"],
        "deprecated": {"deprecated_in": "1.1", "removed_in": "2", "successor": {"method": "RESERVE", "path": "/room"}},
        "errors": ["room_unavailable", {"name": "too_late", "description": "Tomorrow."}],
        "cost": {"tokens": 500, "USD": "0.02"},
        "confirm": False,
        "internal": True,
        "since": "updated_at",
        "proposed": True,
    }
    data["endpoints"][0]["semantic"] |= {
        "impact_tier": "reversible",
        "is_idempotent": True,
        "confidence": 0.9,
        "parameter_hints": {"room_id": ["the room"]},
        "state_transition": {"room.status": "FREE -> TAKEN"},
        "mcp_tool_name": "make_booking",
    }
    document = read(data)
    assert (document.service, document.agtp, document.version) == ("Acme Rooms", "agtp://rooms.acme.example", "1.0.0")
    assert (document.operator, document.contact) == ("Acme", "ops@acme.example")
    assert (document.vocabulary.namespace, document.vocabulary.negotiable) == ("acme", True)
    assert document.data_manifest.available_data[0].name == "room"
    (entry,) = document.endpoints
    endpoint, semantic = entry.endpoint, entry.endpoint.semantic
    assert entry.proposed
    assert (entry.at, entry.declared) == ("/endpoints/0", data["endpoints"][0])
    assert endpoint.errors == (DeclaredError("room_unavailable"), DeclaredError("too_late", "Tomorrow."))
    assert endpoint.deprecated.successor_method == "RESERVE"
    assert (endpoint.description, endpoint.namespace) == ("Book a room.", "rooms")
    assert endpoint.required_scopes == ("booking:room",)
    assert str(endpoint.cost) == "tokens=500, USD=0.02"
    assert (endpoint.confirm, endpoint.since, endpoint.internal) == (False, "updated_at", True)
    assert (semantic.impact, semantic.is_idempotent, semantic.confidence) == ("reversible", True, 0.9)
    assert (semantic.confidence_guidance, semantic.mcp_tool_name) == (0.85, "make_booking")
    assert semantic.state_transition == {"room.status": "FREE -> TAKEN"}


def test_endpoints_under_keys_are_read_with_the_pointers_of_their_declarations() -> None:
    data = booking()
    (entry,) = data["endpoints"]
    data["endpoints"] = {"BOOK /room": {key: value for key, value in entry.items() if key not in ("method", "path")}}
    (found,) = read(data).endpoints
    assert str(found.endpoint) == "BOOK /room"
    assert (found.at, found.declared["path"]) == ("/endpoints/BOOK ~1room", "/room")
    document, _ = read_tree(parse_yaml("endpoints:\n  - method: BOOK\n  - method: FIND\n", "menu.agis"))
    assert [entry.endpoint.location and entry.endpoint.location.line for entry in document.endpoints] == [2, 3]


def test_short_fields_become_json_schemas() -> None:
    tree = parse_yaml(
        "endpoints:\n"
        "  - input: {required: ['party_size (integer, minimum: 1)']}\n"
        "    errors:\n"
        "      too_late:\n"
        "      full:\n",
        "menu.agis",
    )
    document, _ = read_tree(tree)
    endpoint = document.endpoints[0].endpoint
    assert endpoint.input_schema["properties"] == {"party_size": {"type": "integer", "minimum": 1}}
    assert endpoint.error_names == ("too_late", "full")


def test_the_brace_notation_of_the_draft_gives_the_same_document() -> None:
    tree = parse_braces(
        'agis: "1.0"\nservice: "Acme"\nagtp: "agtp://a.example"\n'
        'endpoints:\n  BOOK /room {\n    semantic {\n      intent: "Books a room"\n      actor: agent\n'
        '      outcome: "A booking exists"\n    }\n    input { required: [room_id (int)] }\n'
        "    output { status }\n    errors { room_taken }\n  }\nvocabulary {\n  declared_verbs: [BOOK]\n}\n",
        "menu.agis",
    )
    document, findings = read_tree(tree)
    assert {finding.rule for finding in findings} == {"D127"}
    (entry,) = document.endpoints
    assert str(entry.endpoint) == "BOOK /room"
    assert (entry.endpoint.input_schema["required"], entry.endpoint.error_names) == (["room_id"], ("room_taken",))


@given(st.recursive(values, lambda inner: st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), inner))))
@settings(max_examples=200)
def test_any_document_is_read_without_an_exception(data: Any) -> None:
    tree = parse_json(json.dumps(data), "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    document, findings = read_agis(tree)
    assert (document is None) == (not isinstance(data, dict))
    assert document is not None or [finding.rule for finding in findings] == ["D128"]


@pytest.mark.parametrize(("length", "found"), [(200, []), (450, ["D101 /schemas"])])
def test_copies_of_long_schema_chains_are_limited(length: int, found: list[str]) -> None:
    refers = [{"$ref": f"#/schemas/S{number}"} for number in range(length + 1)]
    chain = {f"S{at}": {"type": "object", "properties": {"next": refers[at + 1]}} for at in range(length)}
    endpoints = [{"method": "FIND", "path": f"/room-{at}", "input": refers[at], "output": {}} for at in range(length)]
    tree = parse_json(json.dumps({"endpoints": endpoints, "schemas": chain}), "menu.agis")
    document, findings = read_tree(tree)
    assert len(document.endpoints) == length
    assert [f"{one.rule} {one.pointer}" for one in findings if one.rule == "D101"] == found


def service_of(data: dict[str, Any]) -> Service:
    return agis_service(read(data))


def test_the_identity_comes_from_the_address_and_the_name() -> None:
    service = service_of(booking() | {"operator": "Acme"})
    identity = service.identity
    assert (identity.server_id, identity.name, identity.operator) == ("rooms.acme.example", "Acme Rooms", "Acme")
    assert (service.agtp, service.document_version) == ("agtp://rooms.acme.example", "1.0.0")
    assert service.description == "Rooms for a night."
    assert service_of({"agtp": 5}).identity.server_id == "localhost"


@rows(
    "address, host",
    ("agtp://a.example", "a.example"),
    ("agtp://a.example:4480/x", "a.example"),
    ("agtp://[::1]:4480", "::1"),
    ("agtp://" + "0a" * 32 + "@a.example", "a.example"),
    ("http://a.example", None),
    ("agtp://", None),
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
