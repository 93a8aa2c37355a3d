from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.checks.lint.registration import check_endpoint
from bespeak.checks.lint.rules.handler import check_mcp
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


def calling(room: Endpoint, **fields: Any) -> Endpoint:
    usual = {"url": "https://upstream.example/rooms", "method": "POST", "error_map": {"4XX": "upstream_error"}}
    errors = tuple(DeclaredError(name) for name in UPSTREAM_ERRORS)
    return replace(room, errors=errors, handler=ExternalService(**{**usual, **fields}))


@pytest.fixture
def found(room: Endpoint, catalog: Catalog) -> Found:
    """The rules a handler breaks, as registration sees it."""

    def check(*, schema: dict[str, Any] | None = None, **fields: Any) -> list[str]:
        endpoint = replace(calling(room, **fields), input_schema=schema or SCHEMA, output_schema=OUTPUT)
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


@rows(
    "fields",
    {"query": ("rom_id",)},
    {"body": "multipart", "files": ("rom_id",)},
    {"header_fields": {"rom_id": "X-Room"}},
    {"cookie_fields": {"rom_id": "room"}},
    {"body_field": "rom_id"},
    {"body": "form", "lists": {"rom_id": "comma"}},
    {"body": "form", "reserved": ("rom_id",)},
    {"body": "multipart", "part_types": {"rom_id": "text/csv"}},
    ids=",".join,
)
def test_a_place_for_a_field_that_is_not_declared_is_refused(found: Found, fields: dict[str, Any]) -> None:
    assert found(**fields) == ["H720"]
    # Where the fields come from elsewhere too, nobody can tell.
    assert "H720" not in found(schema={**SCHEMA, "allOf": [{"properties": {"rom_id": {}}}]}, **fields)


BODIES = ({"body": "json"}, {"body": "form"}, {"body": "multipart"}, {"body_field": "tags"})
STYLED = {"lists": {"tags": "deep"}, "reserved": ("tags",)}
NOT_FOR_CALLERS = (
    *("Authorization", "COOKIE", "Host", "Content-Length", "Transfer-Encoding", "Connection"),
    *("Proxy-Authorization", "Content-Type", "X-Forwarded-For", "AGTP-Agent-ID", "Agent-ID"),
    *("X-Version", "x-version", "X Room", "X-Room:", "", "X-Röm", "X\r\nEvil"),
)


@rows(
    "fields, expected",
    # A field has one place.
    ({"url": "https://upstream.example/{room_id}", "query": ("room_id",)}, ["H721"]),
    ({"query": ("room_id",), "header_fields": {"room_id": "X-Room"}}, ["H721"]),
    ({"header_fields": {"room_id": "X-Room"}, "cookie_fields": {"room_id": "room"}}, ["H721"]),
    ({"query": ("room_id",), "body_field": "room_id"}, ["H721"]),
    ({"query": ("room_id",), "files": ("room_id",), "body": "multipart"}, ["H721"]),
    # Files and media types of parts need a multipart body.
    *(({"files": ("photo",), "body": body}, ["H722"]) for body in (None, "json", "form", "none")),
    ({"body": "form", "part_types": {"tags": "text/csv"}}, ["H722"]),
    ({"body": "multipart", "part_types": {"tags": "text/csv\r\nX-Evil: 1"}}, ["H722"]),
    ({"body": "multipart", "part_types": {"tags": "image/*"}}, ["H722"]),
    ({"body": "multipart", "part_types": {"tags": "text/csv; charset=utf-8"}}, []),
    # GET and HEAD have no body.
    *(({"method": method, **body}, ["H723"]) for method in ("GET", "HEAD") for body in BODIES),
    *(({"method": method, "body": "json"}, []) for method in ("DELETE", "OPTIONS", "POST")),
    ({"method": "GET", "body": "none"}, []),
    ({"body": "xml"}, ["H723"]),
    # A field that is the whole body is JSON.
    *(({"body": body, "body_field": "tags"}, ["H724"]) for body in ("form", "multipart", "none")),
    ({"body": "json", "body_field": "tags"}, []),
    # A response has a place in the output.
    ({"answer": "text"}, ["H725"]),
    ({"answer": "xml"}, ["H725"]),
    ({"answer": "none", "output_field": "report"}, ["H725"]),
    ({"answer": "text", "output_field": "rapport"}, ["H725"]),
    ({"output_field": "rapport"}, ["H725"]),
    # Styles are for fields of queries and forms.
    ({"lists": {"tags": "comma"}}, ["H726"]),
    ({"reserved": ("tags",)}, ["H726"]),
    ({"method": "GET", "header_fields": {"tags": "X-Tags"}, "lists": {"tags": "comma"}}, ["H726"]),
    ({"method": "GET", "url": "https://upstream.example/{tags}", "lists": {"tags": "comma"}}, ["H726"]),
    ({"method": "GET", "lists": {"tags": "tabs"}}, ["H726"]),
    ({"method": "GET", **STYLED}, []),
    ({"query": ("tags",), **STYLED}, []),
    *(({"body": body, **STYLED}, []) for body in ("form", "none", "multipart")),
    # Callers set no reserved header, and a cookie has a usable name.
    *(({"headers": {"X-Version": "2"}, "header_fields": {"lang": name}}, ["H727"]) for name in NOT_FOR_CALLERS),
    *(({"cookie_fields": {"lang": cookie}}, ["H727"]) for cookie in ("", "a b", "a;b", "a=b", "ä")),
    # A name means one thing at the upstream.
    ({"header_fields": {"lang": "X-A", "tags": "x-a"}}, ["H728"]),
    ({"cookie_fields": {"lang": "a", "tags": "a"}}, ["H728"]),
    ({"cookie_fields": {"lang": "session"}, "cookie_credentials": {"session": "${S}"}}, ["H728"]),
    ({"query": ("lang",), "input_transform": {"lang": "key"}, "query_credentials": {"key": "${K}"}}, ["H728"]),
    ({"method": "GET", "query_credentials": {"lang": "${K}"}}, ["H728"]),
    ({"body_field": "tags", "query_credentials": {"lang": "${K}"}}, ["H728"]),
    ({"query_credentials": {"lang": "${K}"}}, []),  # the field is in the body
)
def test_request_to_the_upstream_is_well_defined(found: Found, fields: dict[str, Any], expected: list[str]) -> None:
    assert found(**fields) == expected


def test_output_without_properties_may_have_any_field(room: Endpoint, catalog: Catalog) -> None:
    endpoint = replace(calling(room, method="GET", output_field="items"), output_schema={"type": "object"})
    assert check_endpoint(endpoint, catalog, Policies()) == []


@pytest.mark.parametrize(
    ("header", "expected"), [("HOST", True), ("Proxy-Connection", True), ("X-Real-IP", True), ("X-Lang", False)]
)
def test_a_header_is_forbidden_however_it_is_written(header: str, expected: bool) -> None:
    assert is_reserved_header(header) is expected


@rows(
    "fields",
    {"query_credentials": {"key": "k-123"}},
    {"cookie_credentials": {"session": "s-123"}},
    {"headers": {"authorization": "Bearer t-123"}},
    {"headers": {"X-API-Key": "k-123"}},
)
def test_a_credential_in_the_file_is_a_warning_that_does_not_repeat_it(
    room: Endpoint, catalog: Catalog, fields: dict[str, Any]
) -> None:
    (finding,) = check_endpoint(calling(room, **fields), catalog, Policies())
    assert (finding.rule, finding.severity) == ("H729", "warning")
    assert "-123" not in str(finding)


PLAIN = make_endpoint("BOOK", "/room", echo)


def rules(**server: Any) -> list[tuple[str, str]]:
    handler = McpTool(mcp=McpServer(tool="book_room", **server))
    return [(finding.rule, finding.pointer) for finding in check_mcp(replace(PLAIN, handler=handler))]


@rows(
    "server, at",
    ({}, ""),
    ({"command": "a", "url": "https://x.example"}, ""),
    ({"url": "http://x.example/mcp"}, "/url"),
    ({"url": "tools"}, "/url"),
)
def test_server_has_one_usable_address(server: dict[str, Any], at: str) -> None:
    assert rules(**server) == [("H731", f"/endpoint/handler/mcp{at}")]


def test_usable_servers_have_no_findings_and_keys_of_the_other_kind_are_reported() -> None:
    assert rules(command="hotel-mcp", args=("--key=${KEY}", "--token", "${T}", "--keyboard=de"), env=("A",)) == []
    assert rules(url="http://127.0.0.1:8000/mcp", headers={"Authorization": "Bearer ${KEY}"}) == []
    assert rules(url="https://x.example/mcp?tavilyApiKey=${KEY}", token_file="/etc/token") == []
    assert list(check_mcp(PLAIN)) == []
    assert rules(command="a", headers={"X": "y"}, token_file="t") == [
        ("H732", "/endpoint/handler/mcp/headers"),
        ("H732", "/endpoint/handler/mcp/token_file"),
    ]
    assert rules(url="https://x.example", env=("A",)) == [("H732", "/endpoint/handler/mcp/env")]


@rows(
    "server, at",
    ({"command": "a", "args": ("--api-key=k1",)}, "/args/0"),
    ({"command": "a", "args": ("--token", "k1")}, "/args/1"),
    ({"command": "a", "args": ("--password=x y",)}, "/args/0"),
    ({"command": "a", "args": ("ghp_0123456789abcdef",)}, "/args/0"),
    ({"url": "https://x.example/mcp?tavilyApiKey=k1"}, "/url"),
    ({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer k1"}}, "/headers/Authorization"),
)
def test_secret_in_the_file_is_reported(server: dict[str, Any], at: str) -> None:
    assert rules(**server) == [("H733", f"/endpoint/handler/mcp{at}")]
