"""LangChain's own tools and messages, driven by its scripted chat model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from tests.agent.client.faces import FACES, Face, talking
from tests.agent.tools.test_tool_list import app, booked
from tests.agent.tools.test_tool_runner import Recorded
from tests.faces.mcp.tools import endpoint
from tests.service import AGENT

import bespeak
from bespeak import Question
from bespeak.agent.tools.tool_runner import list_tools
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio


class Scripted(FakeMessagesListChatModel):
    """A model that says what it is told to, and takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"call_{name}_{n}"} for n, (name, args) in enumerate(calls)]
    return AIMessage(content="", tool_calls=made)


async def converse(tools: list[BaseTool], *said: AIMessage) -> list[BaseMessage]:
    """Let the model speak until it calls no tool any more."""
    model = Scripted(responses=[*said, AIMessage(content="Done.")]).bind_tools(tools)
    by_name = {tool.name: tool for tool in tools}
    messages: list[BaseMessage] = [HumanMessage("Book a room.")]
    while True:
        answer = await model.ainvoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            return messages
        messages += [await by_name[call["name"]].ainvoke({**call, "type": "tool_call"}) for call in answer.tool_calls]


def results(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    found = [message for message in messages if isinstance(message, ToolMessage)]
    return [(message.status, json.loads(str(message.content))) for message in found]


@pytest.mark.parametrize("face", FACES)
async def test_a_conversation_with_a_booking_a_refusal_and_a_missing_scope(face: Face) -> None:
    asked: list[Question] = []

    def confirm(question: Question) -> bool:
        asked.append(question)
        return True

    async with talking(face, agent_id=AGENT) as (service, place):
        tools = await service.tools("langchain", confirm=confirm)
        said = (
            calling(("book_room", {"room_id": "12"})),
            calling(("book_room", {"room_id": "taken"}), ("cancel_room", {"room_id": "1"})),
            calling(("book_room", {"room_id": 12})),
        )
        (booking, taken, scope, invalid) = results(await converse(tools, *said))
        assert booking == ("success", {"reservation": 1, "room_id": "12"})
        assert (taken[0], taken[1]["error"]["code"]) == ("error", "room_unavailable")
        assert "room:cancel" in scope[1]["error"]["remedy"]
        assert invalid[1]["error"]["code"] == "input-validation-failed"
        assert [question.arguments["room_id"] for question in asked] == ["12", "taken"]
        assert place.rooms.booked == 1


@pytest.mark.parametrize("confirm", [None, lambda _: False])
async def test_without_agreement_nothing_is_booked(confirm: Any) -> None:
    async with talking("agtp", agent_id=AGENT) as (service, place):
        tools = await service.tools("langchain", confirm=confirm)
        ((status, content),) = results(await converse(tools, calling(("book_room", {"room_id": "12"}))))
        assert status == "error"
        assert content["error"]["code"].startswith("confirmation-")
        assert place.rooms.booked == 0


async def test_a_retried_call_runs_once() -> None:
    async with talking("agtp", agent_id=AGENT) as (service, place):
        tools = await service.tools("langchain", confirm=lambda _: True)
        first, again = results(await converse(tools, *[calling(("book_room", {"room_id": "12"}))] * 2))
        assert first == again
        assert place.rooms.booked == 1


def test_tools_of_a_blocking_client_can_be_called_with_and_without_a_loop() -> None:
    booked.clear()
    with bespeak.connect_sync(app) as service:
        tools = {tool.name: tool for tool in service.tools("langchain", confirm=lambda _: True)}
        found = tools["query_invoices"].invoke({"guest": "self"})
        assert json.loads(found) == {"invoices": []}
        message = tools["book_room"].invoke(
            {"name": "book_room", "args": {"room_id": "12"}, "id": "c", "type": "tool_call"}
        )
        assert isinstance(message, ToolMessage)
        assert json.loads(asyncio.run(tools["query_invoices"].ainvoke({}))) == {"invoices": []}
    assert booked == ["12"]


async def test_asynchronous_tools_say_how_they_are_called_and_take_arguments_of_any_name() -> None:
    async with bespeak.connect(app) as service:
        tools = await service.tools("langchain")
        with pytest.raises(ConfigError, match="use ainvoke"):
            tools[-1].invoke({})
    names = {"self": "a", "config": "b", "run_manager": "c", "args": "d", "kwargs": "e"}
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    service = Recorded(endpoint("FIND", "/rooms", input_schema=schema))
    (tool,) = await list_tools(service, "langchain")
    await tool.ainvoke({"name": tool.name, "args": names, "id": "c", "type": "tool_call"})
    assert service.calls[0][1] == names
