"""One conversation with the SDK's client and with FastMCP's, over HTTP and stdio, in both eras."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faces.mcp.fixtures import CLOSED, written
from tests.faces.mcp.issuer import Issuer
from tests.faces.mcp.tools import LEGACY, Rooms, answering, connected_to
from tests.process import ROOT
from tests.service import AGENT

pytestmark = pytest.mark.anyio
SCOPES = "rooms:read rooms:write"
TWICE: Mapping[str, Any] = {"bespeak/idempotency-key": "k"}


class User:
    """Answers questions as the test says."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"action": "accept", "content": {"confirm": True}}
        self.asked: list[str] = []

    def __call__(self, question: str) -> dict[str, Any]:
        self.asked.append(question)
        return self.answer


class Speaker:
    """Either client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._call = getattr(client, "call_tool_mcp", client.call_tool)  # FastMCP's other method raises errors

    async def tools(self) -> list[str]:
        listed = await self._client.list_tools()
        return [tool.name for tool in getattr(listed, "tools", listed)]

    async def call(self, tool: str, meta: Mapping[str, Any] | None = None, /, **arguments: Any) -> Any:
        """Return the output of a call, or the code of its error."""
        result = await self._call(tool, arguments, meta=dict(meta) if meta else None)
        return msgspec.json.decode(result.content[0].text)["error"] if result.is_error else result.structured_content


@asynccontextmanager
async def sdk(place: str | list[str], era: str, user: User | None) -> AsyncIterator[Speaker]:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    if isinstance(place, str):
        async with connected_to(place, era, user, agent_id=AGENT, authority_scope=SCOPES.replace(" ", ", ")) as client:
            yield Speaker(client)
    else:
        started = StdioServerParameters(command=place[0], args=place[1:], env=dict(os.environ), cwd=ROOT)
        with Path(os.devnull).open("w") as unread:
            transport = stdio_client(started, errlog=unread)
            async with Client(transport, mode=era, elicitation_callback=answering(user)) as client:
                yield Speaker(client)


@asynccontextmanager
async def fastmcp(place: str | list[str], era: str, user: User | None) -> AsyncIterator[Speaker]:
    from fastmcp import Client
    from fastmcp.client.elicitation import ElicitResult
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    async def ask(message: str, *_: Any) -> Any:
        assert user is not None
        return ElicitResult(**user(message))

    handler = ask if user else None
    with Path(os.devnull).open("w") as unread:
        if isinstance(place, str):
            transport: Any = StreamableHttpTransport(
                place, {"Agent-ID": AGENT, "Authority-Scope": SCOPES.replace(" ", ", ")}
            )
        else:
            transport = StdioTransport(
                place[0], place[1:], env=dict(os.environ), cwd=str(ROOT), keep_alive=False, log_file=unread
            )
        async with Client(transport, mode=era, elicitation_handler=handler) as client:
            yield Speaker(client)


CLIENTS = {"sdk": sdk, "fastmcp": fastmcp}


async def converse(speaker: Speaker, user: User) -> None:
    """List, call, and ask the user in every way."""
    assert await speaker.tools() == ["book_rooms", "list_floors", "query_rooms", "reset_rooms", "watch_rooms"]
    assert await speaker.call("query_rooms", beds=2) == {"rooms": ["12"]}
    assert await speaker.call("list_floors") == {"result": [1, 2]}
    assert (await speaker.call("query_rooms", bed=2))["code"] == "input-validation-failed"
    for answer in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"confirm": False}}):
        user.answer = answer
        assert (await speaker.call("book_rooms", room_id="12"))["code"] == "confirmation-declined"
    user.answer = {"action": "accept", "content": {"confirm": True}}
    for _ in range(2):
        assert await speaker.call("book_rooms", TWICE, room_id="12") == {"reservation_id": "r1"}
    taken = await speaker.call("book_rooms", room_id="12")
    assert (taken["code"], taken["details"]) == ("room_unavailable", {"next_free": "14"})
    assert len(user.asked) == 6
    assert user.asked[0].endswith("This cannot be undone.\n- room_id: 12")


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_conversation_over_http(name: str, era: str) -> None:
    user = User()
    async with Rooms().on_http() as (url, _):
        async with CLIENTS[name](url, era, user) as speaker:
            await converse(speaker, user)
        async with CLIENTS[name](url, era, None) as speaker:
            assert (await speaker.call("book_rooms", room_id="14"))["code"] == "confirmation-required"


@pytest.mark.process
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_conversation_over_stdio(name: str, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, user = tmp_path / "rooms_app.py", User()
    app.write_text("from tests.faces.mcp.tools import Rooms\n\napp = Rooms().app\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep))))
    options = ["--store", "memory", "--as", "tests", "--scope", SCOPES.replace(" ", ",")]
    async with CLIENTS[name]([sys.executable, "-m", "bespeak", "mcp", str(app), *options], era, user) as speaker:
        await converse(speaker, user)


async def test_fastmcp_hears_of_new_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastmcp import Client

    monkeypatch.setattr("bespeak.faces.mcp.http._INTERVAL", 0.01)
    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if "ToolListChanged" in repr(message):
            heard.set()

    async with Rooms().on_http() as (url, keeper), Client(url, mode=LEGACY, message_handler=listen) as client:
        await client.list_tools()
        await keeper.dispatcher.server.add_endpoint(written("find_halls", CLOSED))
        await asyncio.wait_for(heard.wait(), 20)


async def test_fastmcp_shows_the_words_of_a_challenge_and_goes_on_with_a_better_token(tmp_path: Path) -> None:
    from fastmcp import Client

    async def agree(*_: Any) -> dict[str, bool]:
        return {"confirm": True}

    issuer = Issuer(tmp_path)
    async with Rooms().on_http(issuer.document) as (url, _):
        reader, writer = (issuer.token(aud="rooms.example", scope=scope) for scope in ("rooms:read", SCOPES))
        async with Client(url, auth=reader, elicitation_handler=agree) as client:
            with pytest.raises(Exception, match="needs the scopes rooms:write"):
                await client.call_tool("book_rooms", {"room_id": "12"})
        async with Client(url, auth=writer, elicitation_handler=agree) as client:
            booked = await client.call_tool("book_rooms", {"room_id": "12"})
    assert booked.structured_content == {"reservation_id": "r1"}
