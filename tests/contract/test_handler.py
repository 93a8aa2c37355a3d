"""Declared handlers: upstream URLs, error maps and MCP servers."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.contract.handler import (
    ExternalService,
    McpServer,
    fill_placeholders,
    is_upstream_status,
    is_usable_address,
    schema_digest,
)


@rows(
    "method, body, body_field, form",
    ("GET", None, None, "none"),
    ("DELETE", None, None, "none"),
    ("DELETE", "json", None, "json"),
    ("DELETE", None, "it", "json"),
    ("POST", None, None, "json"),
    ("POST", "none", None, "none"),
    ("PUT", "multipart", None, "multipart"),
)
def test_body_form_is_declared_or_derived_from_the_method(
    method: str, body: str | None, body_field: str | None, form: str
) -> None:
    handler = ExternalService(url="https://u.example", method=method, body=body, body_field=body_field)
    assert handler.body_form == form


def test_fields_of_a_url_are_named_and_filled_once() -> None:
    handler = ExternalService(url="https://u.example/{a}/x-{b}.json?c={a}", method="GET")
    assert handler.path_fields == ("a", "b")
    assert fill_placeholders("/{a}/{b}/{not this}", {"a": "{b}", "b": "2"}.__getitem__) == "/{b}/2/{not this}"


@pytest.mark.parametrize("text", ["404", "100", "599", "4XX", "5XX"])
def test_a_status_or_one_of_two_ranges_is_a_key_of_an_error_map(text: str) -> None:
    assert is_upstream_status(text)


@pytest.mark.parametrize("text", ["", "4xx", "2XX", "3XX", "600", "40", "default", "4XX ", "٤٠٤"])
def test_anything_else_is_not_an_upstream_status(text: str) -> None:
    assert not is_upstream_status(text)


def test_tools_of_one_server_share_its_key_and_all_variables_are_named_once() -> None:
    first = McpServer(tool="a", command="hotel", args=("--x",), env=("KEY",))
    assert first.key == McpServer(tool="b", input_digest="1", command="hotel", args=("--x",), env=("KEY",)).key
    assert first.key != McpServer(tool="a", command="hotel", args=("--y",), env=("KEY",)).key
    server = McpServer(tool="a", command="hotel", args=("--k=${KEY}", "${KEY}${OTHER}"), env=("TOKEN", "KEY"))
    assert server.variables == ("TOKEN", "KEY", "OTHER")
    web = McpServer(tool="a", url="https://x.example/${ID}", headers={"Authorization": "Bearer ${TOKEN}"})
    assert web.variables == ("ID", "TOKEN")


@rows(
    "url, usable",
    ("https://tools.example/mcp", True),
    ("http://127.0.0.1:8000/mcp", True),
    ("http://[::1]:8000/mcp", True),
    ("http://localhost/mcp", True),
    ("http://tools.example/mcp", False),
    ("http://10.0.0.1/mcp", False),
    ("http://localhost.example/mcp", False),
    ("https://user:secret@tools.example/mcp", False),
    ("https://", False),
    ("https://x.example:0/", False),
    ("ftp://127.0.0.1/", False),
    ("https://[::1", False),
)
@pytest.mark.requirement("API-12.3-1")
def test_plain_http_is_only_for_this_machine(url: str, usable: bool) -> None:
    assert is_usable_address(url) is usable


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert schema_digest({"a": 1, "b": [1, 2]}) == schema_digest({"b": [1, 2], "a": 1})
    assert schema_digest({"a": 1}) != schema_digest({"a": 2})
