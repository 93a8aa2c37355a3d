"""Parameters are placed, styled and typed as each version of OpenAPI says."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cases import rows
from tests.documents.openapi.reading import OK, document, read, read_operation, rules
from tests.echo import Echo, Got, echo_server
from tests.runtime.bindings.test_external import CONTEXT

from bespeak.agent.client.http_transport import CapabilityRequest, build_request
from bespeak.agent.discovery.readers import openapi_capabilities
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.handler import ExternalService
from bespeak.documents.openapi.description import Description, Encoding, Parameter
from bespeak.documents.openapi.facade import make_facades
from bespeak.protocol.address_guard import Origin, WebAddress
from bespeak.runtime.bindings.external import ExternalBinding, bind_external
from bespeak.runtime.bindings.upstream import UpstreamPool


def one(parameter: Any, version: str = "3.0.3", **parts: Any) -> tuple[Parameter | None, list[str]]:
    operation, found = read_operation({"parameters": [parameter]}, version, **parts)
    return (operation.parameters[0] if operation.parameters else None), rules(found)


@rows(
    "place, extra, style, explode",
    ("query", {}, "form", True),
    ("query", {"explode": False}, "form", False),
    ("query", {"style": "pipeDelimited"}, "pipeDelimited", False),
    ("query", {"style": "deepObject"}, "deepObject", True),
    ("header", {}, "simple", False),
    ("cookie", {}, "form", True),
)
def test_style_and_explode_have_their_defaults_by_place(place: str, extra: Any, style: str, explode: bool) -> None:
    made, found = one({"name": "a", "in": place, "schema": {"type": "string"}, **extra})
    assert (made.style, made.explode, made.place, made.required, found) == (style, explode, place, False, [])


@rows(
    "place, collection, style, explode",
    ("query", None, "form", False),
    ("query", "csv", "form", False),
    ("query", "multi", "form", True),
    ("query", "ssv", "spaceDelimited", False),
    ("query", "pipes", "pipeDelimited", False),
    ("header", "csv", "simple", False),
    ("header", "pipes", "simple", False),
)
def test_collections_of_2_0_are_styles(place: str, collection: str | None, style: str, explode: bool) -> None:
    given = {"name": "a", "in": place, "type": "array", "items": {"type": "integer"}}
    made, _ = one({**given, **({"collectionFormat": collection} if collection else {})}, "2.0")
    assert (made.style, made.explode) == (style, explode)
    assert made.schema == {"type": "array", "items": {"type": "integer"}}


def test_parameter_of_2_0_is_its_own_schema_and_one_with_content_is_json() -> None:
    given = {"name": "n", "in": "query", "required": True, "type": "integer", "maximum": 9, "description": "How many."}
    made, _ = one(given, "2.0")
    assert (made.schema, made.required, made.description) == ({"type": "integer", "maximum": 9}, True, "How many.")
    content = {"application/json": {"schema": {"type": "object"}}}
    made, found = one({"name": "a", "in": "query", "content": content})
    assert (made.is_json, made.schema, found) == (True, {"type": "object"}, [])


@rows(
    "parameter, rule",
    ("text", "D104"),
    ({"in": "query"}, "D164"),
    ({"name": "a", "in": "body"}, "D164"),
    ({"name": "a"}, "D164"),
    ({"name": "a", "in": ["query"]}, "D164"),
    ({"name": "Authorization", "in": "header"}, "D164"),
    ({"$ref": "#/components/parameters/None"}, "D161"),
    ({"$ref": "https://x.example/p.json"}, "D161"),
)
def test_unusable_parameter_is_dropped_and_reported(parameter: Any, rule: str) -> None:
    assert one(parameter) == (None, [rule])


@rows(
    "extra, rule",
    ({"style": "matrix", "schema": {}}, "D164"),
    ({}, "D164"),
    ({"content": {"text/csv": {"schema": {}}}}, "D164"),
    ({"content": {"x-a": {}}}, "D164"),
)
def test_guessed_serialization_is_reported(extra: Any, rule: str) -> None:
    made, found = one({"name": "a", "in": "query", **extra})
    assert (made.style, found) == ("form", [rule])


def test_a_reference_leads_to_a_parameter() -> None:
    parts = {
        "parameters": {"Limit": {"name": "limit", "in": "query", "deprecated": True, "schema": {"type": "integer"}}}
    }
    made, found = one({"$ref": "#/components/parameters/Limit"}, components=parts)
    assert (made.name, made.deprecated, found) == ("limit", True, [])


def test_an_operation_overrides_the_parameters_of_its_path() -> None:
    in_path = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    lang = {"name": "lang", "in": "header", "schema": {"type": "string"}}
    own = [{**in_path, "schema": {"type": "integer"}}, {"name": "id", "in": "query", "schema": {"type": "string"}}]
    item = {"parameters": [in_path, lang], "get": {"parameters": own, "responses": OK}}
    made, found = read(document({"/room/{id}": item}))
    assert [(p.name, p.place, p.schema["type"]) for p in made.operations[0].parameters] == [
        ("id", "path", "integer"),
        ("lang", "header", "string"),
        ("id", "query", "string"),
    ]
    assert found == []


def test_path_parameters_match_the_path_template() -> None:
    given = [{"name": "gone", "in": "path", "required": True, "schema": {"type": "string"}}]
    operation, found = read_operation({"parameters": given}, path="/room/{room_id}/{room_id}")
    assert [(p.name, p.place, p.required, p.style, p.explode) for p in operation.parameters] == [
        ("room_id", "path", True, "simple", False)
    ]
    assert rules(found) == ["D164", "D164"]


def test_parameters_are_a_limited_list_in_which_each_counts_once() -> None:
    given = {"name": "a", "in": "query", "schema": {"type": "string"}}
    operation, found = read_operation({"parameters": [given, {**given, "schema": {"type": "integer"}}]})
    assert [p.schema for p in operation.parameters] == [{"type": "string"}]
    assert rules(found) == ["D109"]
    assert rules(read_operation({"parameters": {"a": 1}})[1]) == ["D104"]
    many = [{"name": f"p{n}", "in": "query", "schema": {}} for n in range(500)]
    operation, found = read_operation({"parameters": many})
    assert (len(operation.parameters), rules(found)) == (200, ["D164"])


FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
TEXT = {"type": "string"}
WORDS = {"type": "array", "items": TEXT}
ITEM = {
    "type": "object",
    "properties": {
        "price": {"$ref": "#/components/schemas/Price"},
        "quantity": {"type": "integer"},
        "tax_rates": WORDS,
    },
}
PAYMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer"},
        "expand": WORDS,
        "metadata": {"type": "object", "additionalProperties": TEXT},
        "line_items": {"type": "array", "items": ITEM},
        "shipping": {"anyOf": [{"$ref": "#/components/schemas/Shipping"}, {"type": "string", "enum": [""]}]},
    },
    "required": ["amount"],
}
SCHEMAS = {
    "Price": {"type": "object", "properties": {"currency": TEXT, "unit": {"type": "integer"}}},
    "Shipping": {
        "type": "object",
        "properties": {"address": {"type": "object", "properties": {"city": TEXT, "lines": WORDS}}},
    },
}
DEEP = {"style": "deepObject", "explode": True}
INPUT = {
    "amount": 1250,
    "expand": ["customer", "charges"],
    "metadata": {"order": "6735", "note": "a&b=c [x]"},
    "line_items": [
        {"price": {"currency": "eur", "unit": 5}, "quantity": 2, "tax_rates": ["t1", "t2"]},
        {"price": {"currency": "usd", "unit": 7}},
    ],
    "shipping": {"address": {"city": "Köln", "lines": ["Dom 1"]}},
}


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with echo_server() as server:
        yield server


def described(schema: dict[str, Any], encoding: Any, media_type: str, url: str, version: str) -> Description:
    content = {media_type: {"schema": schema, "encoding": encoding}}
    paths = {"/payments": {"post": {"requestBody": {"required": True, "content": content}, "responses": {"204": {}}}}}
    return read(document(paths, version, servers=[{"url": url}], components={"schemas": SCHEMAS}))[0]


async def sent(
    echo: Echo, given: Any, encoding: Any, schema: Any = PAYMENT, *, media_type: str = FORM, version: str = "3.0.3"
) -> Got:
    """Import an operation, call it, and return the request that arrived."""
    description = described(schema, encoding, media_type, echo.url, version)
    ((facade,), left_out) = make_facades(description, load_bundled("1.1.0"))
    assert not left_out
    handler = facade.endpoint.handler
    assert isinstance(handler, ExternalService)
    binding = bind_external(facade.endpoint, handler, {}, pool=UpstreamPool(echo.tls))
    assert isinstance(binding, ExternalBinding), binding
    try:
        answer = await binding.call(given, CONTEXT)
    finally:
        await binding.aclose()
    assert answer == {}, answer
    return echo.last


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.anyio
async def test_nested_objects_and_lists_of_objects_arrive_in_a_form(echo: Echo) -> None:
    got = await sent(echo, INPUT, dict.fromkeys(("expand", "metadata", "line_items", "shipping"), DEEP))
    assert ("line_items[0][price][currency]", "eur") in got.form
    assert ("shipping[address][lines][]", "Dom 1") in got.form
    as_texts = json.loads(json.dumps(INPUT), parse_int=str)
    assert got.nested == as_texts
    await sent(echo, {"amount": 1, "shipping": ""}, {"shipping": DEEP})
    assert echo.last.form == [("amount", "1"), ("shipping", "")]


def test_an_agent_that_reads_the_description_sends_the_same_form() -> None:
    description = described(PAYMENT, {"line_items": DEEP, "metadata": DEEP}, FORM, "https://pay.example", "3.0.3")
    (capability,), _ = openapi_capabilities(description, WebAddress(Origin("https", "pay.example", 443), "/"))
    request = build_request(capability, {"amount": 1, "line_items": [{"price": {"unit": 5}}], "metadata": {"a": "b"}})
    assert isinstance(request, CapabilityRequest)
    assert request.body == b"amount=1&line_items%5B0%5D%5Bprice%5D%5Bunit%5D=5&metadata%5Ba%5D=b"


@pytest.mark.anyio
@rows(
    "encoding, form",
    ({}, [("f", "a"), ("f", "b")]),
    ({"style": "form", "explode": False}, [("f", "a,b")]),
    ({"explode": False}, [("f", "a,b")]),
    ({"style": "spaceDelimited"}, [("f", "a b")]),
    ({"style": "pipeDelimited", "explode": False}, [("f", "a|b")]),
    ({"style": "pipeDelimited", "explode": True}, [("f", "a"), ("f", "b")]),
    ({"contentType": "application/json"}, [("f", '["a","b"]')]),
    ({"contentType": "application/json", "style": "form"}, [("f", "a"), ("f", "b")]),
)
async def test_a_list_in_a_form_has_the_described_style(echo: Echo, encoding: Any, form: Any) -> None:
    got = await sent(echo, {"f": ["a", "b"]}, {"f": encoding}, of(f=WORDS))
    assert got.form == form


@pytest.mark.anyio
async def test_an_object_in_a_form_has_the_described_style(echo: Echo) -> None:
    schema = {**of(range=of(fromDate=TEXT, to=TEXT), note=TEXT), "required": ["range"]}
    schema["properties"]["range"]["required"] = ["to"]
    given = {"from_date": "1", "to": "2", "note": "x"}
    got = await sent(echo, given, {"range": {"style": "form"}}, schema)
    assert got.nested == {"fromDate": "1", "to": "2", "note": "x"}
    got = await sent(echo, {"range": {"fromDate": "1", "to": "2"}}, {"range": {"explode": False}}, schema)
    assert got.form == [("range", "fromDate,1,to,2")]
    got = await sent(echo, {"range": {"to": "2"}}, {}, schema)
    assert got.form == [("range", '{"to":"2"}')]


def test_an_exploded_object_that_cannot_be_spread_is_reported() -> None:
    free = {"type": "object", "additionalProperties": TEXT}
    for schema in (of(f=free), of(f=of(g=TEXT), g=TEXT)):
        description = described(schema, {"f": {"style": "form"}}, FORM, "https://pay.example", "3.0.3")
        ((facade,), _) = make_facades(description, load_bundled("1.1.0"))
        assert "f is sent as JSON" in [guess.text for guess in facade.guesses]


@pytest.mark.anyio
async def test_reserved_characters_stay_where_the_description_allows_them(echo: Echo) -> None:
    got = await sent(echo, {"f": "https://a.example/?x=1&y=2"}, {"f": {"allowReserved": True}}, of(f=TEXT))
    assert (got.body, got.form) == (b"f=https://a.example/?x%3D1%26y%3D2", [("f", "https://a.example/?x=1&y=2")])


@pytest.mark.anyio
async def test_parts_have_the_described_styles_and_media_types(echo: Echo) -> None:
    photo = {"type": "string", "format": "binary"}
    schema = of(photo=photo, scan={}, table=TEXT, tags=WORDS, deep=of(a=of(b=TEXT)), plain=of(a=TEXT))
    encoding = {
        "photo": {"contentType": "image/*, image/png"},
        "scan": {"contentType": "application/pdf"},
        "table": {"contentType": "text/csv"},
        "tags": {"style": "form", "explode": False},
        "deep": DEEP,
        "plain": {"style": "form"},
    }
    file = b64encode(b"\x89PNG\xff").decode()
    given = {"photo": file, "scan": file, "table": "a;b", "tags": ["x", "y"], "deep": {"a": {"b": "1"}}}
    given["plain"] = {"a": "1"}
    got = await sent(echo, given, encoding, schema, media_type=MULTIPART, version="3.1.0")
    assert got.parts == [
        ("photo", "photo", b"\x89PNG\xff"),
        ("scan", "scan", b"\x89PNG\xff"),
        ("table", None, b"a;b"),
        ("tags", None, b"x,y"),
        ("deep[a][b]", None, b"1"),
        ("plain", None, b'{"a":"1"}'),
    ]
    types = [line for line in got.body.split(b"\r\n") if line.lower().startswith(b"content-type:")]
    assert [line.partition(b": ")[2] for line in types] == [
        *(b"image/png", b"application/pdf", b"text/csv", b"application/json")
    ]


def test_form_fields_of_swagger_have_a_collection_format() -> None:
    fields = [
        {"name": name, "in": "formData", "type": "array", "items": TEXT, **more}
        for name, more in (("a", {}), ("b", {"collectionFormat": "multi"}), ("c", {"collectionFormat": "pipes"}))
    ]
    made, _ = read(document({"/room": {"post": {"parameters": fields, "responses": {"204": {}}}}}, "2.0"))
    ((facade,), _) = make_facades(made, load_bundled("1.1.0"))
    handler = facade.endpoint.handler
    assert isinstance(handler, ExternalService)
    assert handler.lists == {"a": "comma", "c": "pipe"}


@rows(
    "encoding, found",
    ([], ["D168"]),
    ({"f": "deepObject"}, ["D168"]),
    ({"f": {"style": "matrix"}}, ["D164"]),
    ({"f": {"headers": {"X-Part": {}}}}, ["D165"]),
    ({"f": {"contentType": "text/plain\r\nX-Evil: 1"}}, []),
)
def test_an_unusable_encoding_is_reported_and_ignored(encoding: Any, found: list[str]) -> None:
    operation, findings = read_operation(
        {"requestBody": {"content": {MULTIPART: {"schema": of(f=TEXT), "encoding": encoding}}}}
    )
    kept = operation.body.encoding.get("f", Encoding())
    assert (kept.style or "form", kept.content_types) == ("form", ())
    assert rules(findings) == found


def test_the_encoding_of_json_is_ignored() -> None:
    content = {"application/json": {"schema": of(f=TEXT), "encoding": {"f": DEEP}}}
    operation, _ = read_operation({"requestBody": {"content": content}})
    assert operation.body.encoding == {}
