"""OpenAPI descriptions as agents take them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bespeak.agent.discovery.capability import Capability, CredentialPlace
from bespeak.agent.discovery.readers import openapi_capabilities
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.openapi.reader import read_description
from bespeak.protocol.address_guard import Origin, WebAddress
from bespeak.protocol.exchange.refusal import Fault

URL = "https://pets.test/openapi.json"
BASE = WebAddress(Origin("https", "pets.test", 443), "/openapi.json")
OK = {"responses": {"200": {"description": "ok"}}}


def read(paths: dict[str, Any], **members: Any) -> list[Capability]:
    document = {"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "paths": paths, **members}
    description, findings = read_description(json.dumps(document), URL, base_url=URL)
    assert description is not None, findings
    return openapi_capabilities(description, BASE)[0]


def one(operation: dict[str, Any], path: str = "/pets", method: str = "get", **members: Any) -> Capability:
    [capability] = read({path: {method: {**OK, **operation}}}, **members)
    return capability


def test_an_operation_is_known_by_its_id_or_by_its_place() -> None:
    assert one({"operationId": "listPets"}).id == "listPets"
    assert one({}, "/pets/{petId}").id == "get_pets_petId"


def test_no_operation_is_lost_to_another_of_the_same_name() -> None:
    operation = {**OK, "operationId": "x"}
    found = read({"/a": {"get": operation}, "/b": {"get": operation}})
    assert len({each.id for each in found}) == 2


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("/v1", "https://pets.test/v1/pets"),
        ("https://api.pets.test/v2", "https://api.pets.test/v2/pets"),
    ],
)
def test_the_base_path_of_the_server_is_kept(server: str, expected: str) -> None:
    capability = one({}, servers=[{"url": server}])
    assert f"{capability.origin}{capability.target}" == expected


def test_parameters_keep_their_places() -> None:
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        {"name": "sid", "in": "cookie", "schema": {"type": "string"}},
    ]
    capability = one({"parameters": parameters}, "/pets/{id}")
    places = {name: capability.place_of(name).place for name in capability.input_schema["properties"]}
    assert places == {"id": "path", "tags": "query", "X-Trace": "header", "sid": "cookie"}
    assert capability.input_schema["required"] == ["id"]


@pytest.mark.parametrize(
    ("fields", "style"), [({}, "repeat"), ({"explode": False}, "comma"), ({"style": "deepObject"}, "deep")]
)
def test_several_values_are_written_as_the_description_says(fields: dict[str, Any], style: str) -> None:
    parameter = {"name": "q", "in": "query", "schema": {"type": "array", "items": {}}, **fields}
    assert one({"parameters": [parameter]}).place_of("q").style == style


def test_body_members_are_merged_with_the_parameters() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    capability = one({"requestBody": body}, method="post")
    assert capability.place_of("name").place == "body"
    assert capability.input_schema["required"] == ["name"]


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"oneOf": [{"type": "string"}]}])
def test_another_body_is_one_member(schema: dict[str, Any]) -> None:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    capability = one({"requestBody": body}, method="post")
    assert capability.place_of("body").place == "whole-body"
    assert capability.input_schema["required"] == ["body"]


def test_a_recursive_schema_can_be_used() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    capability = one({"requestBody": body}, method="post", components={"schemas": {"Node": node}})
    validator = compile_schema(capability.input_schema)
    assert not isinstance(validator, Fault)
    [name] = capability.input_schema["properties"]
    given = {"next": {"next": {}}}
    assert validator.is_valid({name: given if name == "body" else given["next"]})


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ({"type": "http", "scheme": "bearer"}, CredentialPlace("bearer")),
        ({"type": "http", "scheme": "basic"}, CredentialPlace("basic")),
        ({"type": "http", "scheme": "digest"}, CredentialPlace("unknown")),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, CredentialPlace("header", "X-Key")),
        ({"type": "apiKey", "in": "query", "name": "key"}, CredentialPlace("query", "key")),
        ({"type": "apiKey", "in": "header", "name": "Host"}, CredentialPlace("unknown")),
        ({"type": "openIdConnect", "openIdConnectUrl": "https://x.test"}, CredentialPlace("bearer")),
    ],
)
def test_the_place_of_the_credential_is_read(scheme: dict[str, Any], expected: CredentialPlace) -> None:
    capability = one({"security": [{"s": []}]}, components={"securitySchemes": {"s": scheme}})
    assert capability.credentials == (expected,)


def test_a_choice_without_credentials_comes_last() -> None:
    schemes = {"s": {"type": "http", "scheme": "bearer"}}
    capability = one({"security": [{}, {"s": []}]}, components={"securitySchemes": schemes})
    assert [place.kind for place in capability.credentials] == ["bearer", "none"]


def test_deprecated_operation_is_marked() -> None:
    assert one({"deprecated": True}).deprecated
