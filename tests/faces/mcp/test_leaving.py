"""Clients that leave in the middle of something: their calls are cancelled, and nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.cases import rows
from tests.faces.mcp.tools import Rooms, modern
from tests.service import AGENT

pytestmark = pytest.mark.anyio
AUTHORITY = {"Agent-ID": AGENT, "Authority-Scope": "rooms:read, rooms:write"}
EARLIER = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
    **AUTHORITY,
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}
CROWD = 5
Leave = Callable[[Rooms, str], Awaitable[None]]


async def begin(url: str, headers: dict[str, str], body: Any, method: str = "POST") -> asyncio.StreamWriter:
    """Send a request on a connection of its own, and do not wait for the answer."""
    place, sent = urlsplit(url), json.dumps(body).encode()
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    lines = [f"{name}: {value}" for name, value in {**headers, "Content-Length": str(len(sent))}.items()]
    writer.write("\r\n".join([f"{method} /mcp HTTP/1.1", f"Host: {place.netloc}", *lines, "", ""]).encode() + sent)
    return writer


async def waiting(rooms: Rooms) -> None:
    await asyncio.wait_for(rooms.waiting.wait(), 20)


async def leave(rooms: Rooms, writer: asyncio.StreamWriter) -> None:
    """Close the connection of a call that runs, and wait until it is cancelled."""
    await waiting(rooms)
    writer.close()
    await asyncio.wait_for(rooms.cancelled.wait(), 20)


async def leave_a_plain_call(rooms: Rooms, url: str) -> None:
    headers, body = modern("tools/call", name="watch_rooms", arguments={})
    await leave(rooms, await begin(url, {**headers, **AUTHORITY}, body))


async def leave_a_call_with_progress(rooms: Rooms, url: str) -> None:
    headers, body = modern("tools/call", name="watch_rooms", arguments={})
    body["params"]["_meta"]["progressToken"] = "p"
    await leave(rooms, await begin(url, {**headers, **AUTHORITY}, body))


async def leave_a_stream_of_announcements(_: Rooms, url: str) -> None:
    headers, body = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    async with (
        httpx.AsyncClient(trust_env=False, timeout=30) as client,
        client.stream("POST", url, json=body, headers={**headers, **AUTHORITY}) as stream,
    ):
        assert "acknowledged" in await anext(stream.aiter_text())


async def in_session(rooms: Rooms, url: str, tool: str = "", *, cancels: bool = False, **arguments: Any) -> None:
    """Open a session, call a tool, listen, cancel or leave both, and end the session."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:

        async def post(method: str, params: Any, **more: Any) -> httpx.Response:
            return await client.post(
                url, json={"jsonrpc": "2.0", "method": method, "params": params, **more}, headers=own
            )

        own = EARLIER
        opened = await post("initialize", INITIALIZE, id=0)
        own = {**EARLIER, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        await post("notifications/initialized", {})
        if tool:
            body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
            calling = await begin(url, own, body)
            async with client.stream("GET", url, headers=own):
                if tool == "watch_rooms":
                    await waiting(rooms)
                if cancels:
                    await post("notifications/cancelled", {"requestId": 5})
                    await asyncio.wait_for(rooms.cancelled.wait(), 20)
                calling.close()
        assert (await client.delete(url, headers=own)).status_code == 200
        assert (await post("ping", {}, id=6)).status_code == 404


async def end_a_session(rooms: Rooms, url: str) -> None:
    await in_session(rooms, url)


async def end_a_session_with_a_call(rooms: Rooms, url: str) -> None:
    await in_session(rooms, url, "watch_rooms")
    await asyncio.wait_for(rooms.cancelled.wait(), 20)


async def cancel_a_call_of_a_session(rooms: Rooms, url: str) -> None:
    await in_session(rooms, url, "watch_rooms", cancels=True)


async def end_a_session_with_a_question(rooms: Rooms, url: str) -> None:
    await in_session(rooms, url, "book_rooms", room_id="12")
    assert rooms.booked == []


async def leave_in_the_middle_of_a_body(_: Rooms, url: str) -> None:
    place = urlsplit(url)
    _reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"POST /mcp HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 100\r\n\r\n{{".encode())
    await writer.drain()
    writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
@rows(
    "way",
    *(leave_a_plain_call, leave_a_call_with_progress, leave_a_stream_of_announcements),
    *(leave_in_the_middle_of_a_body, end_a_session, end_a_session_with_a_call),
    *(end_a_session_with_a_question, cancel_a_call_of_a_session),
)
async def test_nothing_is_left_of_a_client_that_leaves(way: Leave) -> None:
    rooms = Rooms()
    async with rooms.on_http() as (url, _), asyncio.timeout(60):

        async def crowd() -> None:
            for _ in range(CROWD):
                rooms.waiting.clear()
                rooms.cancelled.clear()
                await way(rooms, url)

        await crowd()  # the first clients fill pools that stay
        tasks, files = count()
        await crowd()
        while (found := count()) and (found[0] > tasks or found[1] > files):
            await asyncio.sleep(0)


def count() -> tuple[int, int]:
    """Return the number of tasks and of open files."""
    return len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir()))
