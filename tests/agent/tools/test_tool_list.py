"""Tools of a client: what is sent to a model, and what runs its calls."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.agent.client.faces import talking
from tests.service import AGENT

import bespeak
from bespeak import App, Policies, Question, SyncToolList, ToolList
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio

app = App(
    "Rooms",
    server_id="rooms.example",
    operator="Tests",
    contact="ops@rooms.example",
    policies=Policies(scope_required_for_invocation=False),
)
booked: list[str] = []


@app.endpoint("BOOK", "/room", impact="irreversible")
def book(room_id: str) -> dict[str, str]:
    """Reserve a room.

    Outcome: A reservation exists.
    """
    booked.append(room_id)
    return {"room_id": room_id}


@app.endpoint("QUERY", "/invoices", impact="informational")
def invoices(guest: str | None = None) -> dict[str, list[str]]:
    """Find invoices.

    Outcome: The invoices are returned.
    """
    return {"invoices": []}


BOOKING = {"name": "book_room", "arguments": {"room_id": "12"}, "id": "call_1"}


async def test_the_list_is_what_the_api_takes() -> None:
    async with talking("agtp", agent_id=AGENT) as (service, _):
        tools = await service.tools()
        assert isinstance(tools, ToolList)
        assert isinstance(tools, list)
        assert tools.names == ("book_room", "cancel_room", "find_rooms", "reserve_room")
        assert [tool["function"]["name"] for tool in tools] == list(tools.names)
        assert {tool["type"] for tool in await service.tools("openai-responses", strict=False)} == {"function"}
        assert (await service.tools("anthropic", defer=True))[0]["type"].startswith("tool_search")


async def test_a_query_limits_what_is_offered_and_what_runs() -> None:
    async with bespeak.connect(app) as service:
        tools = await service.tools(query="show my bills", limit=1)
        assert tools.names == ("query_invoices",)
        assert "unknown-tool" in (await tools.run(BOOKING))["content"]
        assert "confirmation-required" in (await service.run_tool(BOOKING))["content"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"style": "grok"}, "'grok' is not a style of tools; use one of openai, openai-responses, anthropic"),
        ({"style": "openai", "defer": True}, "defer is for openai-responses and anthropic"),
        ({"style": "langchain", "defer": True}, "defer is for"),
        ({"style": "openai", "limit": 2}, "limit needs a query"),
        ({"style": "openai", "confirm": "approval"}, "confirm must be a function"),
        ({"style": "langchain", "confirm": "approval"}, "confirm must be a function"),
        ({"style": "pydantic-ai", "confirm": "yes"}, "confirm must be a function"),
    ],
)
async def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    async with bespeak.connect(app) as service:
        with pytest.raises(ConfigError, match=message):
            await service.tools(**options)


def test_the_blocking_client_has_the_same_tools() -> None:
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


def test_several_threads_may_share_a_blocking_list() -> None:
    with bespeak.connect_sync(app) as service:
        tools = service.tools()

        async def all_at_once() -> list[dict[str, Any]]:
            call = {"name": "query_invoices", "arguments": "{}"}
            return await asyncio.gather(*(asyncio.to_thread(tools.run, call) for _ in range(8)))

        assert {message["content"] for message in asyncio.run(all_at_once())} == {'{"invoices":[]}'}
