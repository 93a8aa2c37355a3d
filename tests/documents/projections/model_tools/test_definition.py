"""Lists of tools in the form of each provider, held against the provider's own package."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.faces.mcp.tools import endpoint

from bespeak.documents.projections.model_tools.tools import definitions, make_model_tools

SCHEMA = {
    "type": "object",
    "properties": {
        "beds": {"type": "integer", "minimum": 1},
        "when": {"$ref": "#/$defs/Stay", "description": "The nights."},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["beds"],
    "$defs": {
        "Stay": {"type": "object", "properties": {"from": {"type": "string", "format": "date"}}, "required": ["from"]}
    },
}
PLAIN = {"type": "object", "properties": {"any": {}}}


def listed(style: str, **options: Any) -> list[dict[str, Any]]:
    endpoints = [endpoint("FIND", "/rooms", input_schema=SCHEMA), endpoint("QUERY", "/all", input_schema=PLAIN)]
    return definitions(make_model_tools(endpoints, style), style, **options)


def test_tools_for_chat_completions() -> None:
    from openai.lib._pydantic import _ensure_strict_json_schema
    from openai.types.chat import ChatCompletionFunctionToolParam

    tools = listed("openai")
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(tools, strict=True)
    assert [tool["function"]["strict"] for tool in tools] == [True, False]
    strict = tools[0]["function"]["parameters"]
    assert _ensure_strict_json_schema(strict, path=(), root=strict) == strict


def test_tools_for_responses() -> None:
    from openai.types.responses import FunctionToolParam

    tools = listed("openai-responses")
    TypeAdapter(list[FunctionToolParam]).validate_python(tools, strict=True)
    assert tools[0]["parameters"] == listed("openai")[0]["function"]["parameters"]


def test_tools_for_anthropic() -> None:
    from anthropic import transform_schema
    from anthropic.types import ToolParam

    tools = listed("anthropic")
    TypeAdapter(list[ToolParam]).validate_python(tools, strict=True)
    assert [tool.get("strict") for tool in tools] == [True, None]
    assert transform_schema(tools[0]["input_schema"]) == tools[0]["input_schema"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_tools_for_gemini() -> None:
    from google.genai import types

    tools = listed("gemini")
    found = types.GenerateContentConfig(tools=tools).tools
    assert found is not None
    (tool,) = found
    assert isinstance(tool, types.Tool)
    assert [one.name for one in tool.function_declarations or ()] == ["find_rooms", "query_all"]
    for one in tools[0]["functionDeclarations"]:
        types.FunctionDeclaration.model_validate(one)


@pytest.mark.parametrize("style", ["openai-responses", "anthropic"])
def test_deferred_tools_come_with_the_providers_search(style: str) -> None:
    from anthropic.types import ToolUnionParam
    from openai.types.responses import ToolParam

    tools = listed(style, defer=True)
    union: Any = ToolParam if style == "openai-responses" else ToolUnionParam
    TypeAdapter(list[union]).validate_python(tools, strict=True)
    assert "search" in tools[0]["type"]
    assert all(tool["defer_loading"] for tool in tools[1:])
