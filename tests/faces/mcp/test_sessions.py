"""Sessions of earlier revisions: bounded, and nobody can lock others out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.cases import rows
from tests.faces.mcp.tools import INITIALIZE

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.mcp import sessions
from bespeak.faces.mcp.sessions import FRESH, McpSessions, Params, PendingAnswer, event
from bespeak.faces.mcp.sessions import ClientMessage as Asked

pytestmark = pytest.mark.anyio
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
WAIT = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
STREAM = [(b"content-type", b"text/event-stream")]
LIVE = {"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"s1")]}
ENDED = {"type": "http.response.start", "status": 404, "headers": []}
RESULT = {"type": "http.response.body", "body": b'event: message\r\ndata: {"id":1,"result":{}}\r\n\r\n'}
ERROR = {"type": "http.response.body", "body": b'event: message\r\ndata: {"id":1,"error":{}}\r\n\r\n'}


def user(agent: str) -> Any:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=agent, scopes=[])) if agent else None


class Site:
    """Sessions of a server whose only tool waits for ever."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.waiting, self.cancelled = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def open(self, most: int) -> AsyncIterator[Site]:
        from mcp.server.lowlevel import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(Server("t", on_call_tool=self._wait))
        self._sessions = McpSessions(manager, self.ended.append, most=most)
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
        headers = [(b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json")]
        headers += [(b"mcp-session-id", session.encode())] if session else []
        scope = {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "user": user(agent)}
        sent = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]
        answer: list[Any] = []

        async def receive() -> Any:
            if sent:
                return sent.pop()
            await asyncio.Event().wait()
            return None

        async def send(part: Any) -> None:
            answer.append(part)

        asked = Asked("2.0", method=message.get("method", ""))
        await self._sessions.handle({**scope, "headers": headers}, asked, receive, send)
        found = dict(answer[0]["headers"])
        return answer[0]["status"], found.get(b"mcp-session-id", b"").decode()

    async def start(self, agent: str = "") -> str:
        status, session = await self.ask(INITIALIZE, agent)
        assert status == 200
        await self.ask(INITIALIZED, agent, session)
        return session

    async def is_open(self, session: str, agent: str = "") -> bool:
        return (await self.ask(PING, agent, session))[0] == 200


async def test_too_many_sessions_end_the_longest_unused_one_of_the_agent_that_has_most() -> None:
    async with Site().open(most=2) as site:
        first, second = await site.start(), await site.start()
        assert await site.is_open(first)
        third = await site.start()
        assert site.ended == [second]
        assert [await site.is_open(each) for each in (first, second, third)] == [True, False, True]
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


async def test_sessions_are_used_and_ended_by_their_agent_alone() -> None:
    async with Site().open(most=2) as site:
        session = await site.start("a")
        assert (await site.ask(PING, "b", session))[0] == 404
        assert (await site.ask({}, "b", session, method="DELETE"))[0] == 404
        assert (await site.ask({}, "", session, method="DELETE"))[0] == 404
        assert await site.is_open(session, "a")
        assert site.ended == []
        session = await site.start()
        assert await site.is_open(session)
        assert await site.is_open(session, "a")
        assert not await site.is_open(session, "b")
        assert not await site.is_open(session)
        assert (await site.ask({}, "a", session, method="DELETE"))[0] == 200
        assert not await site.is_open(session, "a")


def impatient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions, "INTERVAL", 0.001)
    patch.setattr(sessions, "GRACE", 0.0)


class Peer:
    """A client: what it was sent, and whether it has left."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.pinged, self.left = asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if b"ping" in message.get("body", b""):
            self.pinged.set()


async def test_answers_are_sent_when_ready_and_the_watch_ends_with_one_that_fails() -> None:
    async def answer() -> HttpResponse:
        await asyncio.sleep(0)
        return HttpResponse(200, [(b"x", b"y")], b"{}")

    peer = Peer()
    await PendingAnswer(answer(), STREAM)({}, peer.receive, peer.send)
    start, body = peer.messages
    assert (start["status"], start["headers"], body["body"]) == (200, [(b"x", b"y")], b"{}")

    async def answer() -> HttpResponse:
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    peer, before = Peer(), asyncio.all_tasks()
    with pytest.raises(RuntimeError, match="broken"):
        await PendingAnswer(answer(), STREAM)({}, peer.receive, peer.send)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("body", [b"{}", event(b"{}")], ids=["message", "event"])
async def test_a_long_call_is_kept_alive_as_a_stream_of_events(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    impatient(monkeypatch)
    peer = Peer()

    async def answer() -> HttpResponse:
        await peer.pinged.wait()
        return HttpResponse(200, [], body)

    await PendingAnswer(answer(), STREAM)({}, peer.receive, peer.send)
    start, *pings, last = peer.messages
    assert start["headers"] == STREAM
    assert {ping["body"] for ping in pings} == {b": ping\r\n\r\n"}
    assert last == {"type": "http.response.body", "body": b"event: message\r\ndata: {}\r\n\r\n", "more_body": False}


async def test_a_peer_that_leaves_cancels_the_answer() -> None:
    peer, ended = Peer(), asyncio.Event()

    async def answer() -> HttpResponse:
        peer.left.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    await asyncio.wait_for(PendingAnswer(answer(), STREAM)({}, peer.receive, peer.send), 20)
    assert ended.is_set()
    assert peer.messages == []
    assert not asyncio.current_task().cancelling()


async def test_a_server_that_stops_cancels_the_answer_and_is_told_so() -> None:
    async def answer() -> Any:
        await asyncio.Event().wait()

    peer = Peer()
    running = asyncio.create_task(PendingAnswer(answer(), STREAM)({}, peer.receive, peer.send))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_call_that_another_request_cancels_is_answered() -> None:
    begun, peer = asyncio.Event(), Peer()

    async def answer() -> HttpResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    waiting = PendingAnswer(answer(), STREAM, cancelled=HttpResponse(200, [], b"cancelled"))
    waiting.cancel()  # nothing runs yet
    running = asyncio.create_task(waiting({}, peer.receive, peer.send))
    await begun.wait()
    waiting.cancel()
    await running
    waiting.cancel()
    assert [message.get("body") for message in peer.messages] == [None, b"cancelled"]


async def test_such_a_call_goes_on_if_its_peer_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    peer = Peer()

    async def answer() -> HttpResponse:
        peer.left.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return HttpResponse(200, [], b"done")

    await PendingAnswer(answer(), STREAM, cancelled=HttpResponse(200, [], b"cancelled"))({}, peer.receive, peer.send)
    assert peer.messages[-1]["body"] == b"done"


class Scripted(McpSessions):
    """Sessions of an SDK that answers as it is told; `s1` was opened by an anonymous client."""

    stateless = False

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(self, lambda _: None, clock=lambda: self.now)  # type: ignore[arg-type]

    async def open(self) -> Scripted:
        await self.answer(LIVE, session="", agent="", method="initialize")
        return self

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        for message in self._script:
            await send(message)

    async def answer(
        self,
        *script: Message,
        session: str = "s1",
        agent: str = "ann",
        method: str = "tools/call",
        cancelled: object = None,
    ) -> list[Message]:
        """Let the SDK answer a request; return what was sent."""
        self._script, sent = script, []

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"mcp-session-id", session.encode())] if session else []
        asked = Asked("2.0", method, params=Params(requestId=cancelled))
        await self.handle({"method": "POST", "headers": headers, "user": user(agent)}, asked, Peer().receive, send)
        return sent

    async def cancel(self, request_id: object, **changes: Any) -> None:
        await self.answer(method="notifications/cancelled", cancelled=request_id, **changes)


async def test_a_known_session_becomes_that_of_the_agent_that_shows_credentials() -> None:
    sessions = await Scripted().open()
    assert sessions.find("s1", None) is None
    assert await sessions.answer(LIVE, RESULT) == [LIVE, RESULT]
    assert sessions.find("s1", "ann").session_id == "s1"
    assert [sessions.find(*key) for key in (("s1", "bob"), ("s2", "ann"), (None, "ann"))] == [None] * 3
    await sessions.answer(LIVE, RESULT)
    sessions.now = FRESH + 1
    assert sessions.find("s1", "ann") is None
    await sessions.answer(LIVE, RESULT)
    assert sessions.find("s1", "ann") is not None
    sessions = await Scripted().open()
    await sessions.answer(LIVE, RESULT, agent="")
    assert sessions.find("s1", None) is not None
    await sessions.answer(LIVE, RESULT, method="ping")
    assert sessions.find("s1", "ann") is None  # the SDK has not answered her yet
    await sessions.answer(LIVE, RESULT)
    assert sessions.find("s1", "ann") is not None
    assert sessions.find("s1", None) is None


@rows(
    "messages, changes",
    ([LIVE, ERROR], {}),  # before the handshake
    ([LIVE, RESULT], {"method": "ping"}),
    ([{**LIVE, "headers": []}, RESULT], {}),  # of the modern era, which ignores the header
    ([{**LIVE, "headers": []}, RESULT], {"session": ""}),
)
async def test_other_answers_tell_nothing(messages: list[Message], changes: dict[str, Any]) -> None:
    sessions = await Scripted().open()
    await sessions.answer(*messages, **changes)
    assert sessions.find("s1", "ann") is None


async def running(sessions: Scripted) -> asyncio.Task[Any]:
    """Start a call in the session of Ann; its result is the body that is sent in the end."""
    await sessions.answer(LIVE, RESULT)
    session, begun, peer = sessions.find("s1", "ann"), asyncio.Event(), Peer()
    assert session is not None

    async def call() -> HttpResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> Any:
        await session.follow(7, call(), [], HttpResponse(200, [], b"cancelled"))({}, peer.receive, peer.send)
        return peer.messages[-1]["body"]

    task = asyncio.create_task(run())
    await begun.wait()
    return task


@pytest.mark.parametrize("request_id", [7, "7"])
async def test_a_call_is_cancelled_by_its_client(request_id: int | str) -> None:
    sessions = await Scripted().open()
    task = await running(sessions)
    await sessions.cancel(request_id, agent="bob")
    await sessions.cancel(request_id, session="s2")
    await sessions.cancel(request_id, session="")
    await sessions.cancel([request_id])
    await sessions.cancel(8)
    assert not task.cancelling()
    await sessions.cancel(request_id)
    assert await task == b"cancelled"


async def test_the_end_of_a_session_cancels_its_calls() -> None:
    sessions = await Scripted().open()
    task = await running(sessions)
    await sessions.answer(ENDED, agent="bob")
    assert sessions.find("s1", "ann") is not None
    await sessions.answer(ENDED)
    assert sessions.find("s1", "ann") is None
    assert await task == b"cancelled"
