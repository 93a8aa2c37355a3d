"""A description of any version and notation is read whole, and nothing in a text raises."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each, rows
from tests.documents.openapi.reading import OK, compiled, document, read, rules

from bespeak.documents.adoption.deployment import Imported
from bespeak.documents.openapi import reader
from bespeak.documents.openapi.description import Description, SecurityScheme
from bespeak.documents.openapi.document_text import DescriptionFile, Spot
from bespeak.documents.openapi.facade import import_description
from bespeak.documents.openapi.reader import read_description, read_rate
from bespeak.text.diagnostics.diagnostic import has_errors
from bespeak.text.language.sentence import word_set
from bespeak.text.source.tree import Location

ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
PATHS: dict[str, Any] = {
    "/room/{id}": {
        "get": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "responses": {200: {"description": "ok", "content": {"application/json": {"schema": ROOM}}}},
        }
    }
}


@pytest.mark.parametrize("version", ["3.0.0", "3.0.3", "3.1.0", "3.1.1"])
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_json_and_yaml_of_every_version_are_the_same_description(version: str, write: Any) -> None:
    data = document(PATHS, version, info={"title": "Rooms", "version": 1.5, "contact": {"url": "https://x.example"}})
    made, found = read_description(write(data), "api")
    assert (made.openapi, made.title, made.version, made.contact) == (version, "Rooms", "1.5", "https://x.example")
    assert (made.operations[0].answers[0].schema, made.operations[0].answers[0].status) == (ROOM, "200")
    assert found == []


def test_2_0_description_gives_the_same_result() -> None:
    paths = {
        "/room/{id}": {
            "get": {
                "parameters": [{"name": "id", "in": "path", "required": True, "type": "string"}],
                "responses": {"200": {"description": "ok", "schema": {"$ref": "#/definitions/Room"}}},
            }
        }
    }
    old, found = read(document(paths, "2.0", definitions={"Room": ROOM}))
    new, _ = read(document(PATHS))
    assert old.operations == new.operations
    assert (old.openapi, found) == ("2.0", [])


@rows(
    "data, message",
    ({"paths": {}}, "neither"),
    ({"openapi": "4.0", "paths": {}}, "not understood"),
    ({"swagger": "1.2", "paths": {}}, "not understood"),
    ({"openapi": "three", "paths": {}}, "three"),
    ({"openapi": ["3.1.0"], "paths": {}}, "neither"),
    ({"openapi": "3.1.0"}, "missing"),
    ({"openapi": "3.1.0", "webhooks": {"a": {}}}, "webhooks"),
    ({"openapi": "3.1.0", "paths": []}, "not an object"),
)
def test_other_documents_are_refused(data: Any, message: str) -> None:
    made, found = read_description(json.dumps(data), "api.json")
    assert made is None
    assert [(one.rule, one.severity) for one in found] == [("D160", "error")]
    assert message in found[0].message


def test_yaml_number_is_read_as_a_version() -> None:
    made, _ = read_description(
        "swagger: 2.0\nhost: x.example\npaths: {/a: {get: {responses: {200: {description: ok}}}}}\n", "a"
    )
    assert made.openapi == "2.0"


@pytest.mark.parametrize(
    ("extra", "rule"),
    [({"openapi": "3.2.0"}, "D160"), ({"webhooks": {"a": {}, "b": {}}}, "D165"), ({"paths": {}}, "D160")],
)
def test_changed_or_ignored_parts_are_reported(extra: Any, rule: str) -> None:
    made, found = read(document(PATHS, "3.1.0") | extra)
    assert (rules(found), has_errors(found)) == ([rule], False)
    assert made.title == "Rooms"


def test_values_of_a_wrong_type_never_raise() -> None:
    keys = ("info", "servers", "security", "components", "tags", "paths", "webhooks", "externalDocs", "x-anything")
    values = (None, 1, "x", [], [1, None, {}], {"a": 1}, {"a": {"b": [None]}}, True)

    def check(case: tuple[str, str, Any]) -> None:
        version, key, value = case
        made, found = read_description(json.dumps(document(PATHS, version) | {key: value}), "api.json")
        assert made is not None or has_errors(found)

    check_each(product(("2.0", "3.0.0", "3.1.0"), keys, values), check)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 500)
    | st.sampled_from(["", "a", "get", "#/paths", "#/components/x", "path"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    word_set(
                        "get post parameters name in schema content application/json responses 200 requestBody $ref /a "
                        "/a/{b} components schemas type security servers url"
                    )
                )
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(json_values, json_values, st.sampled_from(["2.0", "3.0.0", "3.1.0"]))
def test_any_json_in_place_of_the_paths_never_raises(paths: Any, components: Any, version: str) -> None:
    data = document({"/a/{b}": paths, "/c": {"post": paths}}, version, components=components)
    made, _ = read_description(json.dumps(data), "api.json")
    for operation in made.operations:
        for schema in [parameter.schema for parameter in operation.parameters]:
            compiled(schema)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    made, found = read_description(text, "api")
    assert made is not None or has_errors(found)


def test_thousands_of_operations_give_few_findings() -> None:
    operation = {
        "operationId": "same",
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/None"}}}},
        "responses": OK,
    }
    made, found = read(document({f"/things/{n}/{{id}}": {"put": operation, "post": operation} for n in range(500)}))
    assert len(made.operations) == 1_000
    assert len(found) < 60
    assert {"D161", "D164", "D166"} == set(rules(found))
    assert any("990 more findings of D161" in one.message for one in found)


def base(
    servers: Any, *, item: Any = None, operation: Any = None, base_url: str | None = None, source: str = "api.json"
) -> tuple[str, list[str]]:
    path: dict[str, Any] = {"get": {"responses": OK}}
    if item is not None:
        path["servers"] = item
    if operation is not None:
        path["get"]["servers"] = operation
    made, found = read(document({"/room": path}, servers=servers), source, base_url=base_url)
    return made.operations[0].base, rules(found)


def urls(*given: str) -> list[dict[str, str]]:
    return [{"url": url} for url in given]


def test_nearest_and_first_server_is_used_with_its_defaults_and_the_source_as_base() -> None:
    whole, near, nearest = urls("https://a.example/v1/"), urls("https://b.example"), urls("http://c.example:8080/x")
    assert base(whole) == ("https://a.example/v1", [])
    assert base(whole, item=near) == ("https://b.example", [])
    assert base(whole, item=near, operation=nearest) == ("http://c.example:8080/x", [])
    assert base(urls("https://a.example", "https://b.example")) == ("https://a.example", ["D167"])
    variables = {"region": {"default": "eu"}, "port": {"enum": [8443]}, "path": {"default": ""}}
    server = {"url": "https://{region}.a.example:{port}/{path}", "variables": variables}
    assert base([server]) == ("https://eu.a.example:8443", [])
    assert base(urls("/v2"), source="https://a.example/openapi.json") == ("https://a.example/v2", [])
    assert base([], source="https://a.example/docs/openapi.json") == ("https://a.example", [])


@rows(
    "url, base_url, result",
    ("/v2", "https://a.example/docs/openapi.json", "https://a.example/v2"),
    ("v2", "https://a.example/docs/openapi.json", "https://a.example/docs/v2"),
    ("//b.example/v2", "https://a.example/", "https://b.example/v2"),
    ("https://b.example", "https://a.example/", "https://b.example"),
    ("https://b.example/v1?x=1#y", None, "https://b.example/v1"),
)
def test_addresses_are_made_absolute(url: str, base_url: str | None, result: str) -> None:
    assert base(urls(url), base_url=base_url) == (result, [])


@pytest.mark.parametrize(
    "servers",
    [urls("/v1"), urls("ftp://a.example"), urls("https://"), urls("https://[bad"), [], [1], "x", urls("{x}"), None],
)
def test_unusable_address_is_reported(servers: Any) -> None:
    result, found = base(servers)
    assert result == ""
    assert set(found) == {"D167"}


@rows(
    "parts, base_url, result",
    ({"host": "a.example", "basePath": "/v1/", "schemes": ["http", "https"]}, None, "https://a.example/v1"),
    ({"host": "a.example", "schemes": ["http"]}, None, "http://a.example"),
    ({"host": "a.example:8080"}, None, "https://a.example:8080"),
    ({"host": "", "basePath": "/v1"}, "http://b.example/swagger.json", "http://b.example/v1"),
    ({"host": "", "basePath": "/v1"}, None, ""),
    ({"host": "a b"}, None, ""),
)
def test_2_0_has_schemes_a_host_and_a_base_path(parts: dict[str, Any], base_url: str | None, result: str) -> None:
    made, found = read(document({"/room": {"get": {"responses": OK}}}, "2.0", **parts), base_url=base_url)
    assert made.operations[0].base == result
    assert rules(found) == ([] if result else ["D167"])


def test_credentials_in_an_address_are_dropped_and_never_shown() -> None:
    assert base(urls("https://user:s3cret@a.example/v1?key=abc")) == ("https://a.example/v1", ["D167"])
    servers = urls("https://user:s3cret@a.example:99999", "https://user:s3cret@b.example")
    _, found = read(document({"/room": {"get": {"responses": OK}}}, servers=servers), "api.json")
    assert found
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    "url", ["https://a b.example", "https://a\\.example", "https://a.example:99999", "https://[::1"]
)
def test_invalid_address_is_not_used(url: str) -> None:
    assert base(urls(url)) == ("", ["D167"])


@pytest.mark.parametrize("url", ["https://[::1]:8443", "https://münchen.example", "https://{tenant}.a.example"])
def test_host_may_be_an_ip_address_or_an_international_name(url: str) -> None:
    found, _ = base(urls(url))
    assert found == url


def test_operation_has_every_described_field() -> None:
    item = {
        "summary": "Rooms",
        "get": {
            "operationId": "findRoom",
            "description": "Finds.",
            "tags": ["room", 1],
            "deprecated": True,
            "responses": OK,
        },
    }
    made, found = read(document({"/room/": item, "x-paths": {}}))
    operation = made.operations[0]
    assert (operation.method, operation.path, operation.pointer) == ("GET", "/room/", "/paths/~1room~1/get")
    assert (operation.operation_id, operation.summary, operation.description) == ("findRoom", "Rooms", "Finds.")
    assert (operation.tags, operation.deprecated) == (("room",), True)
    assert found == []


def test_every_method_is_an_operation_and_two_with_one_id_are_both_kept() -> None:
    methods = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
    made, _ = read(
        document({"/room": {method: {"responses": OK} for method in methods} | {"x-get": {}, "servers": None}})
    )
    assert [operation.method for operation in made.operations] == [method.upper() for method in methods]
    operation = {"operationId": "room", "responses": OK}
    made, found = read(document({"/a": {"get": operation}, "/b": {"get": operation}}))
    assert [one.operation_id for one in made.operations] == ["room", "room"]
    assert rules(found) == ["D166"]


@rows(
    "paths, rule, count",
    ({"room": {"get": {"responses": OK}}}, "D104", 1),
    ({"/room?x=1": {"get": {"responses": OK}}}, "D104", 1),
    ({"/room": {"get": "x", "put": {"responses": OK}}}, "D104", 1),
    ({"/room": ["get"], "/x": {"get": {"responses": OK}}}, "D104", 1),
    ({"/room": {"$ref": "https://x.example/p.json"}, "/x": {"get": {"responses": OK}}}, "D161", 1),
    ({"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}, "/x": {"get": {"responses": OK}}}, "D161", 1),
    ({"/room": {"get": {"responses": OK, "callbacks": {"done": {}}}}}, "D165", 1),
)
def test_invalid_path_is_reported_and_others_are_kept(paths: Any, rule: str, count: int) -> None:
    made, found = read(document(paths))
    assert len(made.operations) == count
    assert set(rules(found)) == {rule}
    assert all(operation.path.startswith("/") for operation in made.operations)


def test_a_path_may_refer_to_another_and_add_to_it() -> None:
    paths = {
        "/a": {"get": {"summary": "A", "responses": OK}},
        "/b": {"$ref": "#/paths/~1a"},
        "/c": {"$ref": "#/paths/~1a", "put": {"summary": "C", "responses": OK}},
    }
    made, found = read(document(paths))
    assert [(one.method, one.path, one.summary) for one in made.operations] == [
        ("GET", "/a", "A"),
        ("GET", "/b", "A"),
        ("GET", "/c", "A"),
        ("PUT", "/c", "C"),
    ]
    assert found == []


def test_a_description_may_be_split_into_files(tmp_path: Path) -> None:
    (tmp_path / "paths").mkdir()
    (tmp_path / "room.yaml").write_text("type: object\nproperties: {next: {$ref: 'room.yaml'}, id: {type: string}}\n")
    (tmp_path / "paths" / "room.yaml").write_text(
        "get:\n  responses:\n    200:\n      description: ok\n"
        "      content: {application/json: {schema: {$ref: '../room.yaml'}}}\n"
    )
    root = tmp_path / "api.json"
    root.write_text(json.dumps(document({"/room": {"$ref": "paths/room.yaml"}})))
    made, found = read_description(root.read_bytes(), str(root))
    schema = made.operations[0].answers[0].schema
    assert schema["properties"]["next"] == {"$ref": "#/$defs/room"}
    assert list(schema["$defs"]) == ["room"]
    assert found == []


def test_number_of_operations_is_limited_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_OPERATIONS", 5)
    made, found = read(document({f"/{n}": {"get": {"responses": OK}} for n in range(9)}))
    assert (len(made.operations), rules(found)) == (5, ["D165"])


SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "Ask us."},
    "token": {"type": "http", "scheme": "Bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "login": {"$ref": "#/components/securitySchemes/oauth"},
    "cert": {"type": "mutualTLS"},
}


def described(schemes: Any, whole: Any = None, own: Any = None) -> tuple[Description, list[str]]:
    operation = {"responses": OK, **({"security": own} if own is not None else {})}
    parts = {"components": {"securitySchemes": schemes}, **({"security": whole} if whole is not None else {})}
    made, found = read(document({"/room": {"get": operation}}, "3.1.0", **parts))
    return made, rules(found)


def test_schemes_are_read_with_their_place() -> None:
    made, found = described(SCHEMES)
    assert made.schemes["key"] == SecurityScheme(
        name="key", kind="apiKey", place="header", parameter="X-Key", description="Ask us."
    )
    assert made.schemes["token"] == SecurityScheme(name="token", kind="http", scheme="bearer")
    assert [made.schemes[name].kind for name in ("oauth", "login", "cert")] == ["oauth2", "oauth2", "mutualTLS"]
    assert found == []


@rows(
    "whole, own, security",
    (None, None, ()),
    ([{"key": []}], None, ({"key": ()},)),
    ([{"key": []}], [], ()),
    ([{"key": []}], [{}], ({},)),
    (
        [{"key": []}],
        [{"oauth": ["read", 1], "key": []}, {"token": []}],
        ({"oauth": ("read",), "key": ()}, {"token": ()}),
    ),
)
def test_operation_has_its_own_or_the_global_requirements(whole: Any, own: Any, security: Any) -> None:
    made, found = described(SCHEMES, whole, own)
    assert (made.operations[0].security, found) == (security, [])


@pytest.mark.parametrize(
    "scheme",
    [{"type": "magic"}, {"type": "apiKey", "in": "body", "name": "k"}, {"type": "apiKey", "in": "header"}, {}, "x"],
)
def test_a_scheme_that_cannot_be_used_is_left_out(scheme: Any) -> None:
    made, found = described({"bad": scheme})
    assert (made.schemes, found) == ({}, ["D169"])


@pytest.mark.parametrize(
    ("own", "rule"), [([{"unknown": []}], "D169"), ("key", "D104"), (["key"], "D104"), ({"key": []}, "D104")]
)
def test_invalid_requirement_is_reported(own: Any, rule: str) -> None:
    made, found = described(SCHEMES, own=own)
    assert (made.operations[0].security, found) == ((), [rule])


def test_2_0_has_definitions_and_a_type_of_its_own() -> None:
    definitions = {"login": {"type": "basic"}, "key": {"type": "apiKey", "in": "query", "name": "k"}}
    made, found = read(
        document(
            {"/room": {"get": {"responses": OK}}}, "2.0", securityDefinitions=definitions, security=[{"login": []}]
        )
    )
    assert (made.schemes["login"].kind, made.schemes["login"].scheme) == ("http", "basic")
    assert made.operations[0].security == ({"login": ()},)
    assert found == []


def spot(value: Any) -> Spot:
    return Spot(value, DescriptionFile("api.json", {}, lambda _: Location("api.json")))


@rows(
    "extension, rate",
    ({"x-ratelimit": "100/min"}, "100/min"),
    ({"x-rate-limit": "5 requests per second"}, "5/s"),
    ({"X-RateLimit": 30}, "30/min"),
    ({"x-rateLimit": {"limit": 1000, "period": "hour"}}, "1000/h"),
    ({"x-rate-limits": {"requests": 10, "window": 1}}, "10/s"),
    ({"x-throttling": {"per_minute": 20}}, "20/min"),
    ({"x-ratelimit": "unlimited"}, None),
    ({"x-ratelimit": {"limit": True}}, None),
    ({"x-other": 5}, None),
    ([], None),
)
def test_the_usual_forms_are_read(extension: Any, rate: str | None) -> None:
    found = read_rate(spot(extension))
    assert (str(found) if found else None) == rate


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)


@given(VALUES | st.lists(VALUES) | st.dictionaries(st.sampled_from(["limit", "period", "per_minute", "x"]), VALUES))
def test_any_value_is_read(value: Any) -> None:
    read_rate(spot({"x-ratelimit": value}))


def imported(**parts: Any) -> Imported:
    paths = {"/rooms": {"get": {"responses": OK, "x-ratelimit": "10/min"}}, "/guests": {"get": {"responses": OK}}}
    return import_description(read(document(paths, **parts))[0])


@pytest.mark.requirement("AI-6.3-1")
def test_limits_of_service_and_operation_are_written_and_a_missing_one_is_a_guess() -> None:
    assert '[limits.rate]\nagent = "600/h"\n' in imported(**{"x-rate-limit": "600/hour"}).files["bespeak.toml"]
    default = imported().files["bespeak.toml"]
    assert "# review (0.3): at most 120/min calls of each agent: the description states no limit\n" in default
    assert 'agent = "120/min"\n' in default
    assert 'endpoints = { "LIST /rooms" = "10/min" }\n' in imported().files["bespeak.toml"]
