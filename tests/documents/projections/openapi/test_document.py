"""The OpenAPI document is valid for any service and matches it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.process import HOTEL
from tests.service import build, echo, make_endpoint
from tests.service_strategy import services

from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.contract.http_route import http_route
from bespeak.contract.service import Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.openapi.document import project_openapi

MODES = [("open",), ("token",), ("token", "mtls", "signed")]


def document(service: Service, modes: tuple[str, ...] = ("open",), **options: Any) -> Any:
    """Return the document as a reader gets it."""
    registrar = assemble(service, updated="2026-01-01T00:00:00Z").registrar
    projected = project_openapi(
        registrar.service,
        registrar.endpoints.values(),
        options.pop("settings", HttpSettings()),
        modes,
        version="1",
        policies=registrar.policies,
        **options,
    )
    return msgspec.json.decode(msgspec.json.encode(projected))


def of(*endpoints: Any, **fields: Any) -> Any:
    return document(build(*endpoints, **fields).routes.service)


def check(found: Any) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(found).iter_errors()] == []


@pytest.mark.parametrize("example", ["hotel", "restaurant"])
def test_the_documents_of_the_examples_are_valid(example: str) -> None:
    service = load_target(str(HOTEL.parent / example)).service
    found = document(service)
    check(found)
    told = [endpoint for endpoint in service.endpoints if not endpoint.internal]
    assert set(found["paths"]) == {http_route(endpoint).path for endpoint in told}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(services(), st.sampled_from(MODES), st.booleans())
def test_the_document_of_any_service_is_valid(service: Service, modes: tuple[str, ...], keeps_state: bool) -> None:
    check(document(service, modes, keeps_state=keeps_state, keys_required=keeps_state))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(services())
def test_operation_ids_are_unique(service: Service) -> None:
    found = document(service)
    ids = [
        operation["operationId"]
        for item in found["paths"].values()
        for name, operation in item.items()
        if name != "parameters"
    ]
    assert len(set(ids)) == len(ids)


def test_internal_and_built_in_endpoints_are_left_out() -> None:
    hidden = replace(make_endpoint("CANCEL", "/room", echo), internal=True)
    found = of(make_endpoint("BOOK", "/room", echo), hidden)
    assert list(found["paths"]) == ["/room:book"]
    assert "cancel" not in msgspec.json.encode(found).decode().lower()


@pytest.mark.requirement("API-14.2-1", "API-14.2-2")
def test_document_names_the_manifest_it_is_derived_from() -> None:
    info = of(make_endpoint("BOOK", "/room", echo))["info"]
    assert info["x-agtp-derived-from"] == "agtp-manifest"
    assert info["x-agtp-manifest"] == "agtp://test.example"
    assert "agtp://test.example" in info["description"]
    assert (info["title"], info["version"]) == ("test.example", "1")


@pytest.mark.parametrize(
    ("contact", "told"),
    [
        ("ops@a.example", {"name": "Test", "email": "ops@a.example"}),
        ("mailto:ops@a.example", {"name": "Test", "email": "ops@a.example"}),
        ("https://a.example/us", {"name": "Test", "url": "https://a.example/us"}),
        ("the desk", {"name": "Test"}),
    ],
)
def test_contact_is_an_e_mail_address_or_a_url(contact: str, told: dict[str, str]) -> None:
    service = build(make_endpoint("BOOK", "/room", echo)).routes.service
    found = document(replace(service, identity=replace(service.identity, contact=contact)))
    assert found["info"]["contact"] == told
    check(found)


def test_server_is_the_configured_url() -> None:
    service = build(make_endpoint("BOOK", "/room", echo)).routes.service
    assert document(service)["servers"] == [{"url": "/"}]
    settings = HttpSettings(url="https://rooms.example/api")
    assert document(service, settings=settings)["servers"] == [{"url": "https://rooms.example/api"}]


def test_a_thousand_endpoints_make_a_document_that_is_valid() -> None:
    shared = {
        name: {"type": "object", "properties": {"next": {"$ref": f"#/$defs/{after}"}}}
        for name, after in zip("ABCDEFGH", "BCDEFGHA", strict=True)
    }
    many = [
        replace(
            make_endpoint("FETCH", f"/thing{number}/{{room_id}}", echo, properties={"room_id": {"type": "string"}}),
            output_schema={"$ref": "#/$defs/A", "$defs": shared},
        )
        for number in range(1000)
    ]
    found = of(*many)
    assert len(found["paths"]) == 1000
    assert set("ABCDEFGH") < set(found["components"]["schemas"])
    assert len(found["components"]["schemas"]) == 1 + 8 + 3 * 1000
    # A public validator needs a quarter of a minute for all of them, so it is shown some.
    few = {path: found["paths"][path] for path in list(found["paths"])[::100]}
    told = msgspec.json.encode(few).decode()
    schemas = found["components"]["schemas"]
    shown = {name: schema for name, schema in schemas.items() if len(name) < 8 or f"schemas/{name}" in told}
    check({**found, "paths": few, "components": {**found["components"], "schemas": shown}})
