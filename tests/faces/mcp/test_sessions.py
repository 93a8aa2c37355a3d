"""Sessions of earlier revisions: bounded, and nobody can lock others out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
WAIT = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}


class Site:
    """Sessions of a server whose only tool waits for ever."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.waiting, self.cancelled = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def open(self, most: int) -> AsyncIterator[Site]:
        from mcp.server.lowlevel import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from bespeak.faces.mcp.sessions import Sessions

        manager = StreamableHTTPSessionManager(Server("t", on_call_tool=self._wait))
        self._sessions = Sessions(manager, self.ended.append, most=most)
        async with manager.run():
            yield self

    async def _wait(self, *_: Any) -> Any:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    async def ask(self, message: Any, agent: str = "", session: str = "", method: str = "POST") -> tuple[int, str]:
        """Send a message of an agent; return the status, and the id of the session that the answer names."""
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        headers = [(b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json")]
        headers += [(b"mcp-session-id", session.encode())] if session else []
        scope: dict[str, Any] = {"type": "http", "method": method, "path": "/mcp", "query_string": b""}
        if agent:
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=agent, scopes=[]))
        sent = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]
        answer: list[Any] = []

        async def receive() -> Any:
            if sent:
                return sent.pop()
            await asyncio.Event().wait()
            return None

        async def send(part: Any) -> None:
            answer.append(part)

        await self._sessions.handle({**scope, "headers": headers}, receive, send)
        found = dict(answer[0]["headers"])
        return answer[0]["status"], found.get(b"mcp-session-id", b"").decode()

    async def start(self, agent: str = "") -> str:
        status, session = await self.ask(INITIALIZE, agent)
        assert status == 200
        await self.ask(INITIALIZED, agent, session)
        return session

    async def is_open(self, session: str, agent: str = "") -> bool:
        return (await self.ask(PING, agent, session))[0] == 200


async def test_the_session_that_was_unused_for_longest_ends_when_there_are_too_many() -> None:
    async with Site().open(most=2) as site:
        first, second = await site.start(), await site.start()
        assert await site.is_open(first)
        third = await site.start()
        assert site.ended == [second]
        assert [await site.is_open(each) for each in (first, second, third)] == [True, False, True]


async def test_sessions_of_the_agent_that_has_most_end_first() -> None:
    async with Site().open(most=3) as site:
        modest = await site.start("a")
        greedy = [await site.start("b") for _ in range(20)]
        assert await site.is_open(modest, "a")
        assert [await site.is_open(each, "b") for each in greedy] == [False] * 18 + [True] * 2


async def test_a_session_in_use_outlives_idle_ones_and_its_end_cancels_its_calls() -> None:
    site = Site()
    async with site.open(most=2):
        busy = await site.start()
        calling = asyncio.create_task(site.ask(WAIT, session=busy))
        await asyncio.wait_for(site.waiting.wait(), 20)
        idle = await site.start()
        await site.start()
        assert site.ended == [idle]
        assert (await site.ask({}, session=busy, method="DELETE"))[0] == 200
        await asyncio.wait_for(site.cancelled.wait(), 20)
        await asyncio.wait_for(calling, 20)
    assert site.ended == [idle, busy]


async def test_another_agent_can_neither_use_nor_end_a_session() -> None:
    async with Site().open(most=2) as site:
        session = await site.start("a")
        assert (await site.ask(PING, "b", session))[0] == 404
        assert (await site.ask({}, "b", session, method="DELETE"))[0] == 404
        assert (await site.ask({}, "", session, method="DELETE"))[0] == 404
        assert await site.is_open(session, "a")
        assert site.ended == []


async def test_a_session_of_an_anonymous_client_belongs_to_the_first_agent_that_uses_it() -> None:
    async with Site().open(most=2) as site:
        session = await site.start()
        assert await site.is_open(session)
        assert await site.is_open(session, "a")
        assert not await site.is_open(session, "b")
        assert not await site.is_open(session)
        assert (await site.ask({}, "a", session, method="DELETE"))[0] == 200
        assert not await site.is_open(session, "a")
