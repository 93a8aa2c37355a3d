"""The OpenAPI document is valid for any service and matches it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.cases import rows
from tests.process import HOTEL
from tests.service import build, echo, make_endpoint
from tests.service_strategy import services

from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.http_route import http_route
from bespeak.contract.limits import read_cost
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.openapi.document import (
    PARAMETERS,
    OperationBuilder,
    parameters_of,
    project_openapi,
    security_of,
    security_schemes,
    token_hints,
)
from bespeak.documents.projections.openapi.responses import Circumstances, SchemaComponents, reference
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.protocol.exchange.principal import Scopes, parse_scopes
from bespeak.state.identity.settings import MODES as SETTINGS_MODES

MODES = [("open",), ("token",), ("token", "mtls", "signed")]


def document(service: Service, modes: tuple[str, ...] = ("open",), **options: Any) -> Any:
    """Return the document as a reader gets it."""
    registrar = assemble(service, updated="2026-01-01T00:00:00Z").registrar
    given = (registrar.service, registrar.endpoints.values(), options.pop("settings", HttpSettings()), modes)
    projected = project_openapi(*given, version="1", policies=registrar.policies, **options)
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
    operations = (each for item in document(service)["paths"].values() for each in item.items())
    ids = [operation["operationId"] for name, operation in operations if name != "parameters"]
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("API-14.2-1", "API-14.2-2")
def test_document_names_manifest_and_server_and_leaves_out_internal_endpoints() -> None:
    hidden = replace(make_endpoint("CANCEL", "/room", echo), internal=True)
    found = of(make_endpoint("BOOK", "/room", echo), hidden)
    assert list(found["paths"]) == ["/room:book"]
    assert "cancel" not in msgspec.json.encode(found).decode().lower()
    info = of(make_endpoint("BOOK", "/room", echo))["info"]
    assert (info["x-agtp-derived-from"], info["x-agtp-manifest"]) == ("agtp-manifest", "agtp://test.example")
    assert "agtp://test.example" in info["description"]
    assert (info["title"], info["version"]) == ("test.example", "1")
    service = build(make_endpoint("BOOK", "/room", echo)).routes.service
    assert document(service)["servers"] == [{"url": "/"}]
    settings = HttpSettings(url="https://rooms.example/api")
    assert document(service, settings=settings)["servers"] == [{"url": "https://rooms.example/api"}]


@rows(
    "contact, told",
    ("ops@a.example", {"name": "Test", "email": "ops@a.example"}),
    ("mailto:ops@a.example", {"name": "Test", "email": "ops@a.example"}),
    ("https://a.example/us", {"name": "Test", "url": "https://a.example/us"}),
    ("the desk", {"name": "Test"}),
)
def test_contact_is_an_e_mail_address_or_a_url(contact: str, told: dict[str, str]) -> None:
    service = build(make_endpoint("BOOK", "/room", echo)).routes.service
    found = document(replace(service, identity=replace(service.identity, contact=contact)))
    assert found["info"]["contact"] == told
    check(found)


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


ROOM = {"room_id": {"type": "string", "description": "Which room."}, "beds": {"type": "integer"}}
FIND = make_endpoint("FIND", "/room/{room_id}", echo, properties=ROOM, required=("room_id", "beds"))


def item(endpoint: Endpoint, **policies: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    schemas = SchemaComponents({})
    served = Circumstances(modes=("open",), policies=Policies(**policies))
    operations = OperationBuilder({endpoint.key: "find_room"}, schemas, served)
    operations.reserve(endpoint)
    return operations.path_item(endpoint), schemas.schemas


def test_an_endpoint_that_can_be_read_has_a_get_and_a_post() -> None:
    found, schemas = item(FIND)
    assert [parameter["name"] for parameter in found["parameters"]] == ["room_id"]
    assert found["parameters"][0]["description"].startswith("Which room. It must not be")
    query = [entry for entry in found["get"]["parameters"] if "$ref" not in entry]
    assert query == [{"name": "beds", "in": "query", "required": True, "schema": {"type": "integer"}}]
    content = {"application/json": {"schema": reference("FindRoomBody")}}
    assert found["post"]["requestBody"] == {"required": True, "content": content}
    assert (schemas["FindRoomBody"]["required"], schemas["FindRoomInput"]) == (["beds"], FIND.input_schema)
    assert (found["get"]["operationId"], found["post"]["operationId"]) == ("find_room", "post_find_room")


def test_an_endpoint_that_changes_something_has_a_post_of_its_own_id() -> None:
    found, _ = item(make_endpoint("BOOK", "/room", echo, impact="irreversible", properties=ROOM))
    assert "get" not in found
    assert found["post"]["operationId"] == "find_room"
    assert found["post"]["requestBody"]["content"]["application/json"]["schema"] == reference("FindRoomInput")
    assert found["post"]["requestBody"]["required"] is False


def test_facts_that_openapi_lacks_are_agtp_extensions() -> None:
    endpoint = replace(
        FIND,
        namespace="desk",
        required_scopes=("room:look",),
        deprecated=Deprecation(deprecated_in="1", successor_method="QUERY", successor_path="/rooms"),
        cost=read_cost({"tokens": 5})[0],
        confirm=False,
        since="changed",
    )
    post = item(endpoint)[0]["post"]
    assert post["deprecated"] is True
    assert (post["tags"], post["summary"]) == (["desk"], endpoint.description)
    assert post["description"] == "Do the thing.\n\nOutcome: The thing is done."
    told = {name.removeprefix("x-agtp-"): value for name, value in post.items() if name.startswith("x-agtp-")}
    assert told == {
        "method": "FIND",
        "path": "/room/{room_id}",
        "semantic": endpoint.semantic.to_json(),
        "input": "#/components/schemas/FindRoomInput",
        "output": "#/components/schemas/FindRoomOutput",
        "required-scopes": ["room:look"],
        "errors": [],
        "namespace": "desk",
        "deprecated": {"deprecated_in": "1", "successor": {"method": "QUERY", "path": "/rooms"}},
        "cost": {"tokens": 5},
        "confirm": False,
        "since": "changed",
        "token-hints": ["compact", "fields", "since"],
    }


def test_confirmation_required_by_the_policy_is_documented() -> None:
    book = make_endpoint("BOOK", "/room", echo, impact="irreversible")
    assert item(book, confirm_irreversible=True)[0]["post"]["x-agtp-confirm"] is True
    assert "x-agtp-confirm" not in item(book)[0]["post"]


BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
UNSAFE = replace(BOOK, semantic=replace(BOOK.semantic, is_idempotent=False))


def names(endpoint: object, mode: str = "open", **served: bool) -> set[str]:
    circumstances = Circumstances(modes=(mode,), policies=Policies(), **served)
    return {PARAMETERS[name]["name"] for name in parameters_of(endpoint, circumstances)}  # type: ignore[arg-type]


PRICED = replace(BOOK, cost=read_cost({"tokens": 5})[0])


@rows(
    "header, offered, not_offered",
    ("Idempotency-Key", names(UNSAFE), names(BOOK) | names(UNSAFE, keeps_state=False)),
    ("Agent-ID", names(BOOK), names(BOOK, "token")),
    ("Authority-Scope", names(BOOK), names(BOOK, "token")),
    ("Budget-Limit", names(PRICED), names(BOOK)),
    ("Confirmation-ID", names(replace(BOOK, confirm=True)), names(BOOK)),
)
def test_headers_are_offered_where_they_apply(header: str, offered: set[str], not_offered: set[str]) -> None:
    assert header in offered
    assert header not in not_offered


def test_keys_and_agents_that_are_needed_are_required() -> None:
    keys = Circumstances(modes=("open",), policies=Policies(), keys_required=True)
    assert "RequiredIdempotencyKey" in parameters_of(UNSAFE, keys)
    assert "RequiredIdempotencyKey" not in parameters_of(BOOK, keys)
    free = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=False))
    assert "AgentId" in parameters_of(BOOK, free)
    assert "RequiredAgentId" in parameters_of(replace(BOOK, required_scopes=("room:book",)), free)
    assert all(PARAMETERS[name]["required"] is True for name in ("RequiredIdempotencyKey", "RequiredAgentId"))


def test_budget_has_every_unit_open_mode_no_schemes_and_input_fields_precede_hints() -> None:
    assert PARAMETERS["BudgetLimit"]["schema"]["properties"].keys() == UNITS.keys()
    served = Circumstances(modes=("open",), policies=Policies())
    assert security_schemes(("open",)) == {}
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=("room:book",)), served) == []
    assert token_hints(BOOK) == ["compact", "fields"]
    assert token_hints(replace(BOOK, since="rooms[].changed")) == ["compact", "fields", "since"]
    own = make_endpoint("FIND", "/room", echo, properties={"compact": {"type": "string"}})
    assert token_hints(own) == ["fields"]
    assert "compact" not in names(own)


@pytest.mark.parametrize("text", ["booking:room", "booking:*", "a:b, c:d", "a:b,c:d:e", "", "A:b", "room", "a:b;c:d"])
def test_the_pattern_of_scopes_is_what_the_server_reads(text: str) -> None:
    read = text == "" or isinstance(parse_scopes(text), Scopes)
    assert (re.search(PARAMETERS["AuthorityScope"]["schema"]["pattern"], text) is not None) == read


@pytest.mark.parametrize("mode", SETTINGS_MODES[1:])
def test_every_mode_with_proof_has_a_scheme(mode: str) -> None:
    (scheme,) = security_schemes((mode,)).values()
    expected = {"token": "http", "key": "apiKey", "mtls": "mutualTLS", "signed": "apiKey"}
    assert scheme["type"] == expected[mode]


@rows(
    "scopes, always, asked",
    (("room:book",), False, [{"Bearer": ["room:book"]}, {"ClientCertificate": ["room:book"]}]),
    ((), True, [{"Bearer": []}, {"ClientCertificate": []}]),
    ((), False, [{}, {"Bearer": []}, {"ClientCertificate": []}]),
)
def test_one_of_several_proofs_is_enough_and_none_if_optional(
    scopes: tuple[str, ...], always: bool, asked: list[dict[str, list[str]]]
) -> None:
    served = Circumstances(modes=("token", "mtls"), policies=Policies(scope_required_for_invocation=always))
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=scopes), served) == asked
