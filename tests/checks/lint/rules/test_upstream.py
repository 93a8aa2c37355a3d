""""""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.checks.lint.registration import check_endpoint
from bespeak.checks.lint.rules.upstream import check_mcp
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService, McpServer, McpTool, is_reserved_header
from bespeak.contract.policy import Policies

Found = Callable[..., list[str]]

FIELDS = ("room_id", "tags", "photo", "lang")
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in FIELDS},
    "required": ["room_id"],
    "additionalProperties": False,
}
OUTPUT = {"type": "object", "properties": {"report": {"type": "string"}}, "additionalProperties": True}


@pytest.fixture
def found(room: Endpoint, catalog: Catalog) -> Found:
    """The rules a handler breaks, as registration sees it."""

    def check(*, schema: dict[str, Any] | None = None, **fields: Any) -> list[str]:
        handler = ExternalService(
            **{
                "url": "https://upstream.example/rooms",
                "method": "POST",
                "error_map": {"4XX": "upstream_error"},
                **fields,
            }
        )
        errors = tuple(DeclaredError(name) for name in UPSTREAM_ERRORS)
        endpoint = replace(room, input_schema=schema or SCHEMA, output_schema=OUTPUT, errors=errors, handler=handler)
        return [finding.rule for finding in check_endpoint(endpoint, catalog, Policies())]

    return check


def test_a_handler_that_uses_every_key_once_is_fine(found: Found) -> None:
    assert not found(
        url="https://upstream.example/rooms/{room_id}",
        body="multipart",
        files=("photo",),
        query=("tags",),
        lists={"tags": "comma"},
        header_fields={"lang": "Accept-Language"},
        headers={"Authorization": "Bearer ${TOKEN}", "X-Version": "2"},
        query_credentials={"api_key": "${KEY}"},
        cookie_credentials={"session": "${SESSION}"},
        answer="text",
        output_field="report",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"query": ("rom_id",)},
        {"body": "multipart", "files": ("rom_id",)},
        {"header_fields": {"rom_id": "X-Room"}},
        {"cookie_fields": {"rom_id": "room"}},
        {"body_field": "rom_id"},
        {"body": "form", "lists": {"rom_id": "comma"}},
        {"body": "form", "reserved": ("rom_id",)},
        {"body": "multipart", "part_types": {"rom_id": "text/csv"}},
    ],
    ids=",".join,
)
def test_a_place_for_a_field_that_is_not_declared_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H720"]
    # Where the fields come from elsewhere too, nobody can tell.
    assert "H720" not in found(schema={**SCHEMA, "allOf": [{"properties": {"rom_id": {}}}]}, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "https://upstream.example/{room_id}", "query": ("room_id",)},
        {"query": ("room_id",), "header_fields": {"room_id": "X-Room"}},
        {"header_fields": {"room_id": "X-Room"}, "cookie_fields": {"room_id": "room"}},
        {"query": ("room_id",), "body_field": "room_id"},
        {"query": ("room_id",), "files": ("room_id",), "body": "multipart"},
    ],
)
def test_a_field_in_two_places_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H721"]


@pytest.mark.parametrize("body", [None, "json", "form", "none"])
def test_files_need_a_multipart_body(found: Found, body: str | None) -> None:
    assert found(files=("photo",), body=body) == ["H722"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("fields", [{"body": "json"}, {"body": "form"}, {"body": "multipart"}, {"body_field": "tags"}])
def test_get_and_head_have_no_body(found: Found, method: str, fields: dict[str, Any]) -> None:
    assert found(method=method, **fields) == ["H723"]


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "POST"])
def test_other_methods_may_have_one(found: Found, method: str) -> None:
    assert found(method=method, body="json") == []
    assert found(method="GET", body="none") == []


def test_a_body_of_an_unknown_form_is_refused(found: Found) -> None:
    assert found(body="xml") == ["H723"]


@pytest.mark.parametrize("body", ["form", "multipart", "none"])
def test_a_field_that_is_the_whole_body_is_json(found: Found, body: str) -> None:
    assert found(body=body, body_field="tags") == ["H724"]
    assert found(body="json", body_field="tags") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"answer": "text"},
        {"answer": "xml"},
        {"answer": "none", "output_field": "report"},
        {"answer": "text", "output_field": "rapport"},
        {"output_field": "rapport"},
    ],
)
def test_an_answer_that_has_no_place_in_the_output_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H725"]


def test_output_without_properties_may_have_any_field(room: Endpoint, catalog: Catalog) -> None:
    handler = ExternalService(
        url="https://upstream.example", method="GET", output_field="items", error_map={"404": "upstream_error"}
    )
    errors = tuple(DeclaredError(name) for name in UPSTREAM_ERRORS)
    endpoint = replace(room, output_schema={"type": "object"}, errors=errors, handler=handler)
    assert check_endpoint(endpoint, catalog, Policies()) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"lists": {"tags": "comma"}},
        {"reserved": ("tags",)},
        {"method": "GET", "header_fields": {"tags": "X-Tags"}, "lists": {"tags": "comma"}},
        {"method": "GET", "url": "https://upstream.example/{tags}", "lists": {"tags": "comma"}},
        {"method": "GET", "lists": {"tags": "tabs"}},
    ],
)
def test_a_style_without_effect_or_meaning_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H726"]


@pytest.mark.parametrize(
    "fields", [{"method": "GET"}, {"query": ("tags",)}, {"body": "form"}, {"body": "none"}, {"body": "multipart"}]
)
def test_a_style_is_for_queries_and_forms(found: Found, fields: dict[str, Any]) -> None:
    assert found(lists={"tags": "deep"}, reserved=("tags",), **fields) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "form", "part_types": {"tags": "text/csv"}},
        {"body": "multipart", "part_types": {"tags": "text/csv\r\nX-Evil: 1"}},
        {"body": "multipart", "part_types": {"tags": "image/*"}},
    ],
)
def test_a_part_type_is_a_media_type_of_a_multipart_body(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H722"]
    assert found(body="multipart", part_types={"tags": "text/csv; charset=utf-8"}) == []


@pytest.mark.parametrize(
    "header",
    [
        *("Authorization", "COOKIE", "Host", "Content-Length", "Transfer-Encoding", "Connection"),
        *("Proxy-Authorization", "Content-Type", "X-Forwarded-For", "AGTP-Agent-ID", "Agent-ID"),
        *("X-Version", "x-version", "X Room", "X-Room:", "", "X-Röm", "X\r\nEvil"),
    ],
)
def test_a_header_that_is_not_for_callers_is_refused(found: Found, header: str) -> None:
    assert found(headers={"X-Version": "2"}, header_fields={"lang": header}) == ["H727"]


@pytest.mark.parametrize(
    ("header", "expected"), [("HOST", True), ("Proxy-Connection", True), ("X-Real-IP", True), ("X-Lang", False)]
)
def test_a_header_is_forbidden_however_it_is_written(header: str, expected: bool) -> None:
    assert is_reserved_header(header) is expected


@pytest.mark.parametrize("cookie", ["", "a b", "a;b", "a=b", "ä"])
def test_a_cookie_needs_a_usable_name(found: Found, cookie: str) -> None:
    assert found(cookie_fields={"lang": cookie}) == ["H727"]


@pytest.mark.parametrize(
    "fields",
    [
        {"header_fields": {"lang": "X-A", "tags": "x-a"}},
        {"cookie_fields": {"lang": "a", "tags": "a"}},
        {"cookie_fields": {"lang": "session"}, "cookie_credentials": {"session": "${S}"}},
        {"query": ("lang",), "input_transform": {"lang": "key"}, "query_credentials": {"key": "${K}"}},
        {"method": "GET", "query_credentials": {"lang": "${K}"}},
        {"body_field": "tags", "query_credentials": {"lang": "${K}"}},
    ],
)
def test_one_name_for_two_things_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H728"]


def test_a_field_in_the_body_may_be_called_as_a_credential_in_the_query(found: Found) -> None:
    assert found(query_credentials={"lang": "${K}"}) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"query_credentials": {"key": "k-123"}},
        {"cookie_credentials": {"session": "s-123"}},
        {"headers": {"authorization": "Bearer t-123"}},
        {"headers": {"X-API-Key": "k-123"}},
    ],
)
def test_a_credential_in_the_file_is_a_warning_that_does_not_repeat_it(
    room: Endpoint, catalog: Catalog, fields: dict[str, Any]
) -> None:
    handler = ExternalService(
        url="https://upstream.example/rooms", method="POST", error_map={"4XX": "upstream_error"}, **fields
    )
    endpoint = replace(room, errors=tuple(DeclaredError(name) for name in UPSTREAM_ERRORS), handler=handler)
    (finding,) = check_endpoint(endpoint, catalog, Policies())
    assert (finding.rule, finding.severity) == ("H729", "warning")
    assert "-123" not in str(finding)


PLAIN = make_endpoint("BOOK", "/room", echo)


def rules(**server: Any) -> list[tuple[str, str]]:
    handler = McpTool(mcp=McpServer(tool="book_room", **server))
    return [(finding.rule, finding.pointer) for finding in check_mcp(replace(PLAIN, handler=handler))]


@pytest.mark.parametrize(
    ("server", "at"),
    [
        ({}, ""),
        ({"command": "a", "url": "https://x.example"}, ""),
        ({"url": "http://x.example/mcp"}, "/url"),
        ({"url": "tools"}, "/url"),
    ],
)
def test_server_has_one_usable_address(server: dict[str, Any], at: str) -> None:
    assert rules(**server) == [("H731", f"/endpoint/handler/mcp{at}")]


def test_usable_servers_have_no_findings() -> None:
    assert rules(command="hotel-mcp", args=("--key=${KEY}", "--token", "${T}", "--keyboard=de"), env=("A",)) == []
    assert rules(url="http://127.0.0.1:8000/mcp", headers={"Authorization": "Bearer ${KEY}"}) == []
    assert rules(url="https://x.example/mcp?tavilyApiKey=${KEY}", token_file="/etc/token") == []
    assert list(check_mcp(PLAIN)) == []


def test_keys_of_the_other_kind_are_reported() -> None:
    assert rules(command="a", headers={"X": "y"}, token_file="t") == [
        ("H732", "/endpoint/handler/mcp/headers"),
        ("H732", "/endpoint/handler/mcp/token_file"),
    ]
    assert rules(url="https://x.example", env=("A",)) == [("H732", "/endpoint/handler/mcp/env")]


@pytest.mark.parametrize(
    ("server", "at"),
    [
        ({"command": "a", "args": ("--api-key=k1",)}, "/args/0"),
        ({"command": "a", "args": ("--token", "k1")}, "/args/1"),
        ({"command": "a", "args": ("--password=x y",)}, "/args/0"),
        ({"command": "a", "args": ("ghp_0123456789abcdef",)}, "/args/0"),
        ({"url": "https://x.example/mcp?tavilyApiKey=k1"}, "/url"),
        ({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer k1"}}, "/headers/Authorization"),
    ],
)
def test_secret_in_the_file_is_reported(server: dict[str, Any], at: str) -> None:
    assert rules(**server) == [("H733", f"/endpoint/handler/mcp{at}")]
