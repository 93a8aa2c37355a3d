"""Content blocks in outputs: which outputs have them, and what counts as one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.handler import McpServer, McpTool, OpaqueHandler
from bespeak.contract.mcp_tool import (
    SCHEMA,
    blocks_in,
    carries_content,
    make_tools,
    result_of,
    text_of,
    without_content,
)
from bespeak.protocol.exchange.refusal import Outcome

TOOL = McpTool(mcp=McpServer(tool="draw", command="artist"))
DECLARED = {"type": "object", "properties": {"content": SCHEMA}}
SIZED = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
NOTE = {"type": "resource", "resource": {"uri": "note:1", "text": "hi"}}
BLOB = {"type": "resource", "resource": {"uri": "note:2", "blob": "aGk="}}
TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("handler", "schema", "carries"),
    [
        (TOOL, DECLARED, True),
        (TOOL, {"type": "object"}, True),
        (TOOL, SIZED, True),
        (TOOL, {**SIZED, "additionalProperties": False}, False),
        (TOOL, {"type": "object", "properties": {"content": {"type": "string"}}}, False),
        (OpaqueHandler(type="registered_function"), DECLARED, True),
        (OpaqueHandler(type="registered_function"), {"type": "object"}, False),
        (OpaqueHandler(type="external_service"), SIZED, True),
    ],
)
def test_outputs_of_tools_and_declared_ones_carry_blocks(handler: Any, schema: Any, carries: bool) -> None:
    assert carries_content(endpoint("DRAW", "/pictures", handler=handler, output_schema=schema)) is carries


def test_schema_apart_from_blocks_says_the_rest() -> None:
    assert without_content(DECLARED) == {"type": "object"}
    assert without_content({**SIZED, "properties": {**SIZED["properties"], "content": SCHEMA}}) == SIZED


@pytest.mark.parametrize("block", [TEXT, IMAGE, AUDIO, LINK, NOTE, BLOB])
def test_block_of_every_kind_is_read(block: dict[str, Any]) -> None:
    assert blocks_in({"content": [block]}) == [block]
    assert bool(text_of(block)) == (block in (TEXT, NOTE))


@pytest.mark.parametrize(
    "block",
    [
        "hi",
        {"type": "text"},
        {"type": "image", "data": 5, "mimeType": "image/png"},
        {"type": "audio", "data": "aGk="},
        {"type": "resource_link", "uri": "file:///a"},
        {"type": "resource", "resource": {"uri": "note:1"}},
        {"type": "resource", "resource": "note:1"},
        {"type": "video", "data": "aGk="},
    ],
)
def test_what_no_client_could_read_is_not_a_block(block: Any) -> None:
    assert blocks_in({"content": [TEXT, block]}) is None


def result(schema: dict[str, Any], output: Any) -> dict[str, Any]:
    (tool,) = make_tools([endpoint("DRAW", "/pictures", handler=TOOL, output_schema=schema)]).values()
    return result_of(tool, Outcome(200, output))


def test_result_has_the_blocks_as_they_are_beside_the_structured_content() -> None:
    assert result(DECLARED, {"content": [IMAGE, TEXT]}) == {"content": [IMAGE, TEXT], "isError": False}
    found = result(SIZED, {"size": 2, "content": [TEXT, AUDIO]})
    assert (found["content"], found["structuredContent"]) == ([TEXT, AUDIO], {"size": 2})
    plain = result(DECLARED, {"answer": 42})
    assert (plain["content"][0]["text"], plain["structuredContent"]) == ('{"answer":42}', {"answer": 42})
    broken = result(SIZED, {"content": [IMAGE]})
    assert broken["isError"]
