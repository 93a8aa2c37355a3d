"""H73x: the MCP server of an endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.upstream import check_mcp
from bespeak.contract.handler import McpServer, McpTool

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
