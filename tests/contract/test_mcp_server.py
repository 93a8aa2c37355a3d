"""The description of an MCP server: its identity, its variables and the addresses that may be used."""

from __future__ import annotations

import pytest

from bespeak.contract.handler import McpServer, is_usable_address, schema_digest


def test_tools_of_one_server_share_its_key() -> None:
    first = McpServer(tool="a", command="hotel", args=("--x",), env=("KEY",))
    assert first.key == McpServer(tool="b", input_digest="1", command="hotel", args=("--x",), env=("KEY",)).key
    assert first.key != McpServer(tool="a", command="hotel", args=("--y",), env=("KEY",)).key


def test_all_variables_are_named_once() -> None:
    server = McpServer(tool="a", command="hotel", args=("--k=${KEY}", "${KEY}${OTHER}"), env=("TOKEN", "KEY"))
    assert server.variables == ("TOKEN", "KEY", "OTHER")
    web = McpServer(tool="a", url="https://x.example/${ID}", headers={"Authorization": "Bearer ${TOKEN}"})
    assert web.variables == ("ID", "TOKEN")


@pytest.mark.parametrize(
    ("url", "usable"),
    [
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
    ],
)
@pytest.mark.requirement("API-12.3-1")
def test_plain_http_is_only_for_this_machine(url: str, usable: bool) -> None:
    assert is_usable_address(url) is usable


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert schema_digest({"a": 1, "b": [1, 2]}) == schema_digest({"b": [1, 2], "a": 1})
    assert schema_digest({"a": 1}) != schema_digest({"a": 2})
