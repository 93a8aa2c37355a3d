"""Tools of a client: what is sent to a model, and what runs its calls."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.agent.client.faces import talking
from tests.cases import rows
from tests.faces.mcp.tools import endpoint
from tests.service import AGENT

import bespeak
from bespeak import App, Question, SyncToolList, ToolList
from bespeak.agent.tools.tool_runner import FEW, choose
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio
app = App(
    "Rooms",
    server_id="rooms.example",
    operator="Tests",
    contact="ops@rooms.example",
)
booked: list[str] = []
BOOKING = {"name": "book_room", "arguments": {"room_id": "12"}, "id": "call_1"}
ROOMS = endpoint("BOOK", "/room", intent="Book a room for a guest.")
BILLS = endpoint("QUERY", "/invoices", intent="Find the invoices of a guest.")
HIDDEN = endpoint("QUERY", "/invoices/open", intent="Find open invoices.", internal=True)


@app.endpoint("BOOK", "/room", impact="irreversible", outcome="A reservation exists.")
def book(room_id: str) -> dict[str, str]:
    """Reserve a room."""
    booked.append(room_id)
    return {"room_id": room_id}


@app.endpoint("QUERY", "/invoices", impact="informational", outcome="The invoices are returned.")
def invoices(guest: str | None = None) -> dict[str, list[str]]:
    """Find invoices."""
    return {"invoices": []}


async def test_the_list_is_what_the_api_takes_and_a_query_limits_what_runs() -> None:
    async with talking("agtp", agent_id=AGENT) as (service, _):
        tools = await service.tools()
        assert isinstance(tools, ToolList)
        assert isinstance(tools, list)
        assert tools.names == ("book_room", "cancel_room", "find_rooms", "reserve_room")
        assert [tool["function"]["name"] for tool in tools] == list(tools.names)
        assert {tool["type"] for tool in await service.tools("openai-responses", strict=False)} == {"function"}
        assert (await service.tools("anthropic", defer=True))[0]["type"].startswith("tool_search")
    async with bespeak.connect(app) as service:
        tools = await service.tools(query="show my bills", limit=1)
        assert tools.names == ("query_invoices",)
        assert "unknown-tool" in (await tools.run(BOOKING))["content"]
        assert "confirmation-required" in (await service.run_tool(BOOKING))["content"]


@rows(
    "options, message",
    ({"style": "grok"}, "'grok' is not a style of tools; use one of openai, openai-responses, anthropic"),
    ({"style": "openai", "defer": True}, "defer is for openai-responses and anthropic"),
    ({"style": "langchain", "defer": True}, "defer is for"),
    ({"style": "openai", "limit": 2}, "limit needs a query"),
    ({"style": "openai", "confirm": "approval"}, "confirm must be a function"),
    ({"style": "langchain", "confirm": "approval"}, "confirm must be a function"),
    ({"style": "pydantic-ai", "confirm": "yes"}, "confirm must be a function"),
)
async def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    async with bespeak.connect(app) as service:
        with pytest.raises(ConfigError, match=message):
            await service.tools(**options)


def test_the_blocking_client_has_the_same_tools_for_several_threads() -> None:
    asked: list[tuple[str, int]] = []

    def confirm(question: Question) -> bool:
        asked.append((question.tool, threading.get_ident()))
        return True

    booked.clear()
    with bespeak.connect_sync(app) as service:
        tools = service.tools("anthropic", confirm=confirm)
        assert isinstance(tools, SyncToolList)
        call = {"type": "tool_use", "id": "t1", "name": "book_room", "input": {"room_id": "12"}}
        done = tools.run(call)
        assert tools.run_all({"content": [{"type": "text", "text": "x"}, call]}) == [done]
        assert "is_error" not in service.run_tool({**call, "id": "t2"}, confirm=confirm)
        assert booked == ["12", "12"]
        assert {name for name, _ in asked} == {"book_room"}
        tools = service.tools()

        async def all_at_once() -> list[dict[str, Any]]:
            call = {"name": "query_invoices", "arguments": "{}"}
            return await asyncio.gather(*(asyncio.to_thread(tools.run, call) for _ in range(8)))

        assert {message["content"] for message in asyncio.run(all_at_once())} == {'{"invoices":[]}'}


def test_listed_endpoints_are_chosen_by_a_query_if_there_is_one() -> None:
    assert choose([ROOMS, BILLS, HIDDEN], "openai") == [ROOMS.key, BILLS.key]
    assert choose([ROOMS, BILLS, HIDDEN], "openai", query="show me my bills", limit=1) == [BILLS.key]
    many = [endpoint("QUERY", f"/rooms-{number}") for number in range(600)]
    assert len(choose([*many, BILLS], "openai", query="rooms")) == FEW
    assert choose([ROOMS], "openai", query="zzz") == []
    with pytest.raises(ConfigError, match="limit needs a query"):
        choose([ROOMS], "openai", limit=3)


@pytest.mark.parametrize("style", ["openai", "openai-responses", "gemini"])
def test_more_tools_than_the_provider_takes_are_refused_with_advice(style: str) -> None:
    many = [endpoint("QUERY", f"/rooms-{number}") for number in range(129)]
    with pytest.raises(ConfigError, match="at most 128 tools in a request; there are 129: choose some with query"):
        choose(many, style)
    assert len(choose(many, "anthropic")) == len(choose(many, "langchain")) == 129
