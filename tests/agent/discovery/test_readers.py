"""OpenAPI descriptions as agents take them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.test_lookup import AGIS
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS

from bespeak.agent.discovery.readers import (
    Capability,
    CredentialPlace,
    agis_tree,
    ai_capabilities,
    check_producer,
    openapi_capabilities,
    read_agis_document,
    read_ai_document,
)
from bespeak.agent.discovery.web_document import DISCOVERY, OPENAPI, Fetched
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.openapi.reader import read_description
from bespeak.protocol.address_guard import Origin, WebAddress
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic

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


def test_operations_have_unique_ids_and_choices_without_credentials_come_last() -> None:
    assert one({"operationId": "listPets"}).id == "listPets"
    assert one({}, "/pets/{petId}").id == "get_pets_petId"
    operation = {**OK, "operationId": "x"}
    found = read({"/a": {"get": operation}, "/b": {"get": operation}})
    assert len({each.id for each in found}) == 2
    assert one({"deprecated": True}).deprecated
    schemes = {"s": {"type": "http", "scheme": "bearer"}}
    capability = one({"security": [{}, {"s": []}]}, components={"securitySchemes": schemes})
    assert [place.kind for place in capability.credentials] == ["bearer", "none"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [("/v1", "https://pets.test/v1/pets"), ("https://api.pets.test/v2", "https://api.pets.test/v2/pets")],
)
def test_the_base_path_of_the_server_is_kept(server: str, expected: str) -> None:
    capability = one({}, servers=[{"url": server}])
    assert f"{capability.origin}{capability.target}" == expected


def test_parameters_and_bodies_keep_their_places_and_recursive_schemas_can_be_used() -> None:
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
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    capability = one({"requestBody": body}, method="post")
    assert (capability.place_of("name").place, capability.input_schema["required"]) == ("body", ["name"])
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    capability = one({"requestBody": body}, method="post", components={"schemas": {"Node": node}})
    validator = compile_schema(capability.input_schema)
    assert not isinstance(validator, Fault)
    [name] = capability.input_schema["properties"]
    given = {"next": {"next": {}}}
    assert validator.is_valid({name: given if name == "body" else given["next"]})


@rows("fields, style", ({}, "repeat"), ({"explode": False}, "comma"), ({"style": "deepObject"}, "deep"))
def test_several_values_are_written_as_the_description_says(fields: dict[str, Any], style: str) -> None:
    parameter = {"name": "q", "in": "query", "schema": {"type": "array", "items": {}}, **fields}
    assert one({"parameters": [parameter]}).place_of("q").style == style


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"oneOf": [{"type": "string"}]}])
def test_another_body_is_one_member(schema: dict[str, Any]) -> None:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    capability = one({"requestBody": body}, method="post")
    assert (capability.place_of("body").place, capability.input_schema["required"]) == ("whole-body", ["body"])


@rows(
    "scheme, expected",
    ({"type": "http", "scheme": "bearer"}, CredentialPlace("bearer")),
    ({"type": "http", "scheme": "basic"}, CredentialPlace("basic")),
    ({"type": "http", "scheme": "digest"}, CredentialPlace("unknown")),
    ({"type": "apiKey", "in": "header", "name": "X-Key"}, CredentialPlace("header", "X-Key")),
    ({"type": "apiKey", "in": "query", "name": "key"}, CredentialPlace("query", "key")),
    ({"type": "apiKey", "in": "header", "name": "Host"}, CredentialPlace("unknown")),
    ({"type": "openIdConnect", "openIdConnectUrl": "https://x.test"}, CredentialPlace("bearer")),
)
def test_the_place_of_the_credential_is_read(scheme: dict[str, Any], expected: CredentialPlace) -> None:
    capability = one({"security": [{"s": []}]}, components={"securitySchemes": {"s": scheme}})
    assert capability.credentials == (expected,)


AI_READING_BASE = WebAddress(Origin("https", "flights.test", 443), "/.well-known/ai")


def ai_reading_read(**changes: Any) -> list[Capability]:
    document, _ = read_ai_document(json.dumps({**FLIGHTS, **changes}).encode(), "ai")
    assert document is not None
    return ai_capabilities(document, AI_READING_BASE)[0]


def test_parameters_and_token_hints_become_a_closed_schema() -> None:
    [capability] = ai_reading_read(token_hints={})
    assert capability.input_schema == {
        "type": "object",
        "properties": {"from": {"type": "string", "description": "airport code"}},
        "required": ["from"],
        "additionalProperties": False,
    }
    entry = {key: value for key, value in FLIGHTS["capabilities"][0].items() if key != "params"}
    [capability] = ai_reading_read(capabilities=[entry], token_hints={})
    assert capability.input_schema == {"type": "object", "properties": {}}
    entry = {**FLIGHTS["capabilities"][0], "method": "POST"}
    hints = {"compact_mode": True, "field_filtering": True, "delta_support": True}
    [capability] = ai_reading_read(capabilities=[entry], token_hints=hints)
    assert {"compact", "fields", "since"} < capability.input_schema["properties"].keys()
    assert (capability.place_of("compact").place, capability.place_of("from").place) == ("query", "body")


@rows(
    "auth, expected",
    ({"type": "none"}, (CredentialPlace("none"),)),
    ({"type": "apikey", "header": "X-Key"}, (CredentialPlace("header", "X-Key"),)),
    ({"type": "apikey"}, (CredentialPlace("header", "X-API-Key"),)),
    ({"type": "apikey", "header": "Authorization"}, (CredentialPlace("bearer"),)),
    ({"type": "apikey", "header": "Host"}, (CredentialPlace("unknown"),)),
    ({"type": "apikey", "header": "X-Key: sk_live"}, (CredentialPlace("unknown"),)),
    ({"type": "bearer"}, (CredentialPlace("bearer"),)),
    ({"type": "oauth2"}, (CredentialPlace("bearer"),)),
    ({"type": "api_key"}, ()),
    (None, ()),
)
def test_ai_reading_the_place_of_the_credential_is_read(auth: Any, expected: tuple[CredentialPlace, ...]) -> None:
    [capability] = ai_reading_read(auth=auth)
    assert capability.credentials == expected


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    document, found = read_ai_document(data, "ai")
    assert document is None
    assert found


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(FLIGHTS)) | st.text(max_size=6), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(FLIGHTS)), _json, max_size=4))
def test_no_document_raises_and_results_are_bounded(changes: dict[str, Any]) -> None:
    document, _ = read_ai_document(json.dumps({**FLIGHTS, **changes}).encode(), "ai")
    if document is not None:
        usable, _ = ai_capabilities(document, AI_READING_BASE)
        assert all(len(each.description) <= 200 and len(each.id) <= 64 for each in usable)
        assert 0 < len(document.name) <= 100


AGIS_READING_URL = "https://rooms.test/"


def fetched(body: bytes) -> Fetched:
    return Fetched(what="the AGIS document", url=AGIS_READING_URL, final_url=AGIS_READING_URL, status=200, body=body)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_good_document_is_taken_with_nothing_to_say(mark: bytes) -> None:
    document, found = read_agis_document(fetched(mark + AGIS.encode()))
    assert (document.service, found) == ("Rooms", [])


@rows(
    "body, rules",
    (b'agis: "1.0"\nservice: \xff', ["D101"]),
    (b"agis: [", ["D102"]),
    (b"service: Rooms\n", ["W105"]),
    (b"just a text", ["W105"]),
    (json.dumps({"agis": "1.0", "service": "Rooms", "endpoints": []}).encode(), ["W105"]),
)
def test_unusable_document_is_a_warning(body: bytes, rules: list[str]) -> None:
    document, found = read_agis_document(fetched(body))
    assert document is None
    assert [finding.rule for finding in found][-1:] == rules
    assert found[-1].severity == "warning"


def test_documents_that_break_the_rules_are_told_to_authors_and_used_by_nobody() -> None:
    document, found = read_agis_document(fetched(AGIS.replace("path: /room", "path: /book-room").encode()))
    assert document is None
    assert (found[0].severity, found[-1].rule) == ("error", "W105")
    endpoint = AGIS[AGIS.index("  - method") :]
    body = AGIS + "".join(endpoint.replace("/room", f"/book-room{number}") for number in range(100))
    assert len(read_agis_document(fetched(body.encode()))[1]) <= 21
    assert agis_tree(fetched(b'{"openapi": "3.1.0"}')) is None
    assert isinstance(agis_tree(fetched(b"{")), Diagnostic)
    tree = agis_tree(fetched(AGIS.encode()))
    assert tree is not None
    assert not isinstance(tree, Diagnostic)
    found = produced(json.dumps({**FLIGHTS, "aiendpoint": "2.0", "extra": 1}).encode())
    assert {"D170"} <= {finding.rule for finding in found}
    assert found[0].location.file == AI_URL
    assert [each for each in produced(json.dumps(FLIGHTS).encode()) if each.severity == "error"] == []
    assert produced(b"{}", OPENAPI.what) == []
    assert [each.rule for each in produced(b"\xff")] == ["D101"]


AI_URL = "https://flights.test/.well-known/ai"


def produced(body: bytes, what: str = DISCOVERY.what) -> list[Diagnostic]:
    return check_producer(Fetched(what=what, url=AI_URL, final_url=AI_URL, status=200, body=body))
