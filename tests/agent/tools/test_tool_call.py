"""Calls of tools as providers' packages have them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter
from tests.cases import rows
from tests.faces.mcp.tools import endpoint

from bespeak.agent.tools.tool_runner import Shape, ToolCall, ToolResult, bounded, read_call, read_calls
from bespeak.errors import ConfigError

CHAT = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
RESPONSES = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}
ANTHROPIC = {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
GEMINI = {"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}}
LANGCHAIN = {"type": "tool_call", "id": "call_1", "name": "f", "args": {"a": 1}}
PLAIN = {"name": "f", "arguments": {"a": 1}, "id": "call_1"}
DONE = ToolResult({"room": "12"})
REFUSED = ToolResult(error={"code": "taken", "message": "Taken.", "remedy": "Choose another."})


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


@rows(
    "call, shape",
    (CHAT, "openai"),
    (RESPONSES, "openai-responses"),
    (ANTHROPIC, "anthropic"),
    (GEMINI, "gemini"),
    ({"function_call": GEMINI["functionCall"]}, "gemini"),
    (LANGCHAIN, "plain"),
    (PLAIN, "plain"),
)
def test_a_call_is_read_from_a_dictionary(call: dict[str, Any], shape: str) -> None:
    read = read_call(call)
    assert (read.shape, read.name, read.id) == (shape, "f", "call_1")
    assert read.arguments in ({"a": 1}, '{"a":1}')


@pytest.mark.parametrize("given", [None, ""])
def test_a_tool_without_parameters_may_be_called_without_arguments(given: Any) -> None:
    assert read_call({**CHAT, "function": {"name": "f", "arguments": given}}).arguments == {}


@rows(
    "call", None, "f", 3, {}, {"type": "text", "text": "x"}, {"name": "f"}, {"name": 3, "arguments": {}}, object(), int
)
def test_anything_else_is_not_a_call(call: Any) -> None:
    with pytest.raises(ConfigError, match="is not a tool call"):
        read_call(call)


@rows(
    "message, names",
    ({"role": "assistant", "content": None, "tool_calls": [CHAT, CHAT]}, ["f", "f"]),
    ([CHAT, ANTHROPIC, "x"], ["f", "f"]),
    *[(message, []) for message in ({"role": "assistant", "content": "Hello."}, None, [])],
    ({"output": [{"type": "reasoning"}, RESPONSES]}, ["f"]),
    ({"role": "assistant", "content": [{"type": "text", "text": "x"}, ANTHROPIC]}, ["f"]),
    *[(message, ["f"]) for message in ({"role": "model", "parts": [{"text": "x"}, GEMINI]}, CHAT)],
)
def test_the_calls_of_a_message_are_found_among_its_parts(message: Any, names: list[str]) -> None:
    assert [call.name for call in read_calls(message)] == names


def message(result: ToolResult, shape: Shape, call_id: str | None = "call_1") -> dict[str, Any]:
    return result.message(ToolCall(shape, "book_room", {}, call_id))


def test_messages_for_openai_and_anthropic_are_what_their_packages_take() -> None:
    from openai.types.chat import ChatCompletionToolMessageParam

    made = message(DONE, "openai")
    TypeAdapter(ChatCompletionToolMessageParam).validate_python(made)
    assert made == {"role": "tool", "tool_call_id": "call_1", "content": '{"room":"12"}'}
    from openai.types.responses.response_input_param import FunctionCallOutput

    made = message(REFUSED, "openai-responses")
    TypeAdapter(FunctionCallOutput).validate_python(made)
    assert msgspec.json.decode(made["output"]) == {"error": REFUSED.error}
    from anthropic.types import ToolResultBlockParam

    for result in (DONE, REFUSED):
        TypeAdapter(ToolResultBlockParam).validate_python(message(result, "anthropic"))
    assert "is_error" not in message(DONE, "anthropic")
    assert message(REFUSED, "anthropic")["is_error"] is True
    expected = {"id": "call_1", "name": "book_room", "content": '{"room":"12"}', "is_error": False}
    assert message(DONE, "plain") == expected
    assert ToolResult("hello").text == "hello"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_the_part_for_gemini() -> None:
    from google.genai import types

    found = types.Part.model_validate(message(DONE, "gemini")).function_response
    assert (found.id, found.name, found.response) == ("call_1", "book_room", {"output": {"room": "12"}})
    expected = {"name": "book_room", "response": {"error": REFUSED.error}}
    assert message(REFUSED, "gemini", None)["functionResponse"] == expected


def test_long_results_and_refusals_are_cut_by_the_contract_and_say_what_they_lack() -> None:
    rooms = endpoint("FIND", "/rooms")
    output = {"rooms": [{"room_id": str(number)} for number in range(1_000)], "total": 1_000}
    made = bounded(ToolResult(output), 2_000, rooms)
    assert len(made.text) <= 2_000
    partial = made.output["partial_result"]
    assert (partial["output"]["total"], partial["output"]["rooms"][0]) == (1_000, {"room_id": "0"})
    assert partial["left_out"][0]["of"] == 1_000
    assert "match less" in partial["rest"]
    assert bounded(DONE, 2_000, rooms) is DONE
    assert len(bounded(ToolResult("x" * 9_000), 2_000, rooms).text) <= 2_000
    long = ToolResult(error={**(REFUSED.error or {}), "details": {"free": ["x" * 300] * 99}})
    made = bounded(long, 2_000, endpoint("FIND", "/rooms"))
    assert len(made.text) <= 2_000
    assert made.error is not None
    assert {**made.error, **(REFUSED.error or {})} == made.error
