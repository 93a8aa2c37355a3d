"""Manifests of other servers: typed where they follow the draft, tolerant otherwise, harmless if they are garbage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.limits import read_cost
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.manifest_json import ManifestDocument, parse_manifest
from bespeak.documents.projections.agtp_manifest import project_endpoint, project_manifest
from bespeak.text.diagnostics.diagnostic import Diagnostic

FOLDER = Path(__file__).parent / "reference_deployment"

SEMANTIC = {
    "intent": "Reserve a room.",
    "actor": "agent",
    "outcome": "It is reserved.",
    "capability": "transaction",
    "confidence": 1,
    "impact": "reversible",
    "is_idempotent": True,
}


def parse(**fields: Any) -> tuple[ManifestDocument, list[Diagnostic]]:
    manifest, findings = parse_manifest(json.dumps(fields).encode())
    assert manifest is not None
    return manifest, findings


def test_own_manifest_is_read_back() -> None:
    service = read_deployment(FOLDER)[0].service()
    sent = project_manifest(service, service.endpoints, service.policies, "1.1.0", updated="2026-11-15T00:00:00Z")
    manifest, findings = parse_manifest(json.dumps(sent).encode())
    assert findings == []
    assert manifest.raw == sent
    assert (manifest.agtp_version, manifest.agtp_api_version, manifest.catalog_version) == ("1.0", "1.0", "1.1.0")
    assert (manifest.catalog_versions_supported, manifest.server.server_id) == (("1.1.0",), "library.example")
    assert (manifest.updated, manifest.policies) == ("2026-11-15T00:00:00Z", service.policies)
    assert manifest.apis == service.apis
    for received, declared in zip(manifest.endpoints, service.endpoints, strict=True):
        assert (received.key, received.semantic) == (declared.key, declared.semantic)
        assert (received.input_schema, received.errors) == (declared.input_schema, declared.errors)
        assert received.deprecated == declared.deprecated
        assert received.handler == OpaqueHandler(type=declared.handler.type)


@pytest.mark.parametrize(("field", "value"), [("confirm", True), ("confirm", False), ("since", "rooms[].updated_at")])
def test_optional_field_is_read_back(field: str, value: object) -> None:
    (endpoint, *_) = read_deployment(FOLDER)[0].service().endpoints
    assert field not in project_endpoint(endpoint)
    manifest, _ = parse(endpoints=[project_endpoint(replace(endpoint, **{field: value}))])  # type: ignore[arg-type]
    assert [getattr(one, field) for one in manifest.endpoints] == [value]


def test_cost_is_read_back_and_an_invalid_one_is_dropped() -> None:
    service = read_deployment(FOLDER)[0].service()
    cost, _ = read_cost({"tokens": 500, "USD": "0.02"})
    sent = project_endpoint(replace(service.endpoints[0], cost=cost))
    assert sent["cost"] == {"tokens": 500, "USD": "0.02"}
    assert "cost" not in project_endpoint(service.endpoints[0])
    strange = {**sent, "path": "/strange", "cost": {"gold": 1}}
    manifest, findings = parse(endpoints=[sent, strange])
    assert [endpoint.cost for endpoint in manifest.endpoints] == [cost, None]
    assert [(found.rule, found.severity) for found in findings if found.rule == "Y880"] == [("Y880", "warning")]


@pytest.mark.requirement("API-8.4-2")
def test_an_endpoint_is_found_by_method_and_path() -> None:
    entry = {"method": "BOOK", "path": "/room", "semantic": SEMANTIC, "errors": ["taken"]}
    manifest, _ = parse(endpoints=[entry], embedded_methods=["QUERY"])
    endpoint = manifest.endpoint("BOOK", "/room")
    assert endpoint.errors == (DeclaredError("taken"),)
    assert manifest.endpoint("QUERY", "/room") is None


def test_the_reference_form_of_an_endpoint_is_read() -> None:
    guest = {"name": "guest", "type": "string", "description": "Who.", "enum": None, "format": None}
    entry = {
        "method": "BOOK",
        "name": "BOOK",
        "path": "/room",
        "category": "custom",
        "error_codes": [400, 422],
        "input": {"required": [guest], "optional": []},
        "required_params": [guest],
        "output": [{"name": "slip", "type": "integer", "description": "Which."}],
        "errors": [],
        "semantic": SEMANTIC,
        "handler": {"type": "registered_function"},
    }
    manifest, findings = parse(endpoints=[entry], security={"identity_binding": "none"}, assurance={"posture": "demo"})
    (endpoint,) = manifest.endpoints
    assert endpoint.input_schema["properties"] == {"guest": {"type": "string", "description": "Who."}}
    assert endpoint.input_schema["required"] == ["guest"]
    assert not [finding for finding in findings if finding.pointer.startswith("/endpoints")]


def test_methods_may_be_names_or_specifications_and_the_signature_is_kept() -> None:
    manifest, _ = parse(
        embedded_methods=["QUERY", {"name": "PLAN"}, {"method": "FIND"}, 3, {}], custom_methods=["TEND"]
    )
    assert (manifest.embedded_methods, manifest.custom_methods) == (("QUERY", "PLAN", "FIND"), ("TEND",))
    assert parse(manifest_signature="a.b.c")[0].signature == "a.b.c"
    assert parse(manifest_signature={"protected": "x"})[0].signature == {"protected": "x"}
    assert parse(manifest_signature=None)[0].signature is None
    assert parse(manifest_signature=3)[0].signature is None


def test_incomplete_endpoint_gets_cautious_defaults() -> None:
    manifest, _ = parse(endpoints=[{"method": "BOOK", "path": "/a"}, {"method": "BOOK", "path": "/b", "semantic": {}}])
    for endpoint in manifest.endpoints:
        assert endpoint.semantic.impact == "irreversible"
        assert endpoint.semantic.is_idempotent is False
        assert endpoint.semantic.confidence == 0.0


def test_unusable_endpoints_and_missing_parts_are_a_bounded_number_of_warnings() -> None:
    manifest, findings = parse(endpoints=[{"method": "BOOK"}, {"path": "/a"}, {}, 3])
    assert manifest.endpoints == ()
    assert [finding.rule for finding in findings if finding.pointer.startswith("/endpoints/")] == ["D116"] * 3
    manifest, findings = parse()
    assert manifest.catalog_version == ""
    assert {finding.severity for finding in findings} == {"warning"}
    assert len(findings) == 8
    _, findings = parse(endpoints=[{"method": 1, "path": 2}] * 5_000)
    assert len(findings) <= 101


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"\xff", b'{"a":' * 50_000, b"[" * 200_000, b"null", b'{"a": NaN}', b"\x00"]
)
def test_text_that_is_not_a_json_object_is_not_a_manifest(data: bytes) -> None:
    manifest, findings = parse_manifest(data)
    assert manifest is None
    assert len(findings) == 1


MEMBERS = ["method", "path", "semantic", "errors", "input", "output", "required", "methods", "name", "type"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=10,
)
KEYS = st.sampled_from(
    [
        "agtp_version",
        "server",
        "endpoints",
        "policies",
        "embedded_methods",
        "hosted_agents",
        "apis",
        "manifest_signature",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_any_object_is_a_manifest_without_errors(fields: dict[str, Any]) -> None:
    _, findings = parse(**fields)
    assert not [finding for finding in findings if finding.severity == "error"]


@pytest.mark.parametrize("key", ["endpoints", "hosted_agents", "embedded_methods"])
def test_manifest_with_too_many_entries_is_refused(key: str) -> None:
    manifest, findings = parse_manifest(json.dumps({key: [{}] * 100_001}).encode())
    assert manifest is None
    assert [str(finding.rule) for finding in findings] == ["D104"]
    assert f"`{key}` has 100001 entries" in findings[0].message
