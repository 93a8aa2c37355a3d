"""The list of tools in the form of each provider's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bespeak.documents.projections.model_tools.model_tool import ModelTool

_SEARCH: Final[dict[str, dict[str, Any]]] = {
    "openai-responses": {"type": "tool_search"},
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
}
DEFERRING: Final = tuple(_SEARCH)
"""Styles of providers that can search tools themselves."""


def definitions(tools: Sequence[ModelTool], style: str, *, defer: bool = False) -> list[dict[str, Any]]:
    """Return what to send as `tools`.

    With `defer`, the model does not see the tools until it finds them with the provider's own search, which is added.
    """
    if style == "gemini":
        return [{"functionDeclarations": [_gemini(tool) for tool in tools]}]
    made = [_WRITERS[style](tool) for tool in tools]
    if not defer:
        return made
    return [_SEARCH[style], *({**one, "defer_loading": True} for one in made)]


def _openai(tool: ModelTool) -> dict[str, Any]:
    function = {key: value for key, value in _responses(tool).items() if key != "type"}
    return {"type": "function", "function": function}


def _responses(tool: ModelTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.conversion.schema,
        # Said in any case: the Responses API takes a tool for strict that does not say so.
        "strict": tool.conversion.strict,
    }


def _anthropic(tool: ModelTool) -> dict[str, Any]:
    made = {"name": tool.name, "description": tool.description, "input_schema": tool.conversion.schema}
    return {**made, "strict": True} if tool.conversion.strict else made


def _gemini(tool: ModelTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.conversion.schema}


_WRITERS: Final = {"openai": _openai, "openai-responses": _responses, "anthropic": _anthropic}
