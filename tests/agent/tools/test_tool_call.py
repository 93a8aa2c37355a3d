"""Calls of tools as providers' packages have them."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.agent.tools.tool_call import ToolCall, read_call, read_calls
from bespeak.errors import ConfigError

CHAT = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
RESPONSES = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}
ANTHROPIC = {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
GEMINI = {"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}}
LANGCHAIN = {"type": "tool_call", "id": "call_1", "name": "f", "args": {"a": 1}}
PLAIN = {"name": "f", "arguments": {"a": 1}, "id": "call_1"}


def objects() -> list[tuple[str, Any]]:
    from anthropic.types import ToolUseBlock
    from openai.types.chat import ChatCompletionMessageFunctionToolCall
    from openai.types.responses import ResponseFunctionToolCall

    return [
        ("openai", ChatCompletionMessageFunctionToolCall.model_validate(CHAT)),
        ("openai-responses", ResponseFunctionToolCall.model_validate(RESPONSES)),
        ("anthropic", ToolUseBlock.model_validate(ANTHROPIC)),
    ]


def test_a_call_is_read_from_the_object_of_a_package() -> None:
    for shape, call in objects():
        read = read_call(call)
        assert (read.shape, read.name, read.id) == (shape, "f", "call_1")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_a_call_is_read_from_the_parts_of_gemini() -> None:
    from google.genai import types

    part = types.Part.model_validate(GEMINI)
    assert read_call(part) == ToolCall("gemini", "f", {"a": 1}, "call_1")
    assert read_call(types.Part(function_call=types.FunctionCall(name="f"))) == ToolCall("gemini", "f", {}, None)
    content = types.Content(role="model", parts=[types.Part(text="Let me see."), part])
    response = types.GenerateContentResponse(candidates=[types.Candidate(content=content)])
    assert [call.name for call in read_calls(content)] == [call.name for call in read_calls(response)] == ["f"]


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (CHAT, "openai"),
        (RESPONSES, "openai-responses"),
        (ANTHROPIC, "anthropic"),
        (GEMINI, "gemini"),
        ({"function_call": GEMINI["functionCall"]}, "gemini"),
        (LANGCHAIN, "plain"),
        (PLAIN, "plain"),
    ],
)
def test_a_call_is_read_from_a_dictionary(call: dict[str, Any], shape: str) -> None:
    read = read_call(call)
    assert (read.shape, read.name, read.id) == (shape, "f", "call_1")
    assert read.arguments in ({"a": 1}, '{"a":1}')


@pytest.mark.parametrize("given", [None, ""])
def test_a_tool_without_parameters_may_be_called_without_arguments(given: Any) -> None:
    assert read_call({**CHAT, "function": {"name": "f", "arguments": given}}).arguments == {}


@pytest.mark.parametrize(
    "call",
    [None, "f", 3, {}, {"type": "text", "text": "x"}, {"name": "f"}, {"name": 3, "arguments": {}}, object(), int],
)
def test_anything_else_is_not_a_call(call: Any) -> None:
    with pytest.raises(ConfigError, match="is not a tool call"):
        read_call(call)


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [CHAT, CHAT]}, ["f", "f"]),
        ({"role": "assistant", "content": "Hello."}, []),
        ({"output": [{"type": "reasoning"}, RESPONSES]}, ["f"]),
        ({"role": "assistant", "content": [{"type": "text", "text": "x"}, ANTHROPIC]}, ["f"]),
        ({"role": "model", "parts": [{"text": "x"}, GEMINI]}, ["f"]),
        ([CHAT, ANTHROPIC, "x"], ["f", "f"]),
        (CHAT, ["f"]),
        (None, []),
        ([], []),
    ],
)
def test_the_calls_of_a_message_are_found_among_its_parts(message: Any, names: list[str]) -> None:
    assert [call.name for call in read_calls(message)] == names
