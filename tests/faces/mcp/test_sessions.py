"""Sessions of earlier revisions: bounded, and nobody can lock others out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.mcp import sessions
from bespeak.faces.mcp.sessions import FRESH, LiveSessions, Waiting, event

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


STREAM = [(b"content-type", b"text/event-stream")]


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


async def test_an_answer_is_sent_when_it_is_ready() -> None:
    async def answer() -> HttpResponse:
        await asyncio.sleep(0)
        return HttpResponse(200, [(b"x", b"y")], b"{}")

    peer = Peer()
    await Waiting(answer(), STREAM)({}, peer.receive, peer.send)
    start, body = peer.messages
    assert (start["status"], start["headers"], body["body"]) == (200, [(b"x", b"y")], b"{}")


async def test_a_long_call_is_kept_alive_as_a_stream_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    peer = Peer()

    async def answer() -> HttpResponse:
        await peer.pinged.wait()
        return HttpResponse(200, [], b"{}")

    await Waiting(answer(), STREAM)({}, peer.receive, peer.send)
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

    await asyncio.wait_for(Waiting(answer(), STREAM)({}, peer.receive, peer.send), 20)
    assert ended.is_set()
    assert peer.messages == []
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_server_that_stops_cancels_the_answer_and_is_told_so() -> None:
    async def answer() -> Any:
        await asyncio.Event().wait()

    peer = Peer()
    running = asyncio.create_task(Waiting(answer(), STREAM)({}, peer.receive, peer.send))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_the_watch_ends_with_an_answer_that_fails() -> None:
    async def answer() -> HttpResponse:
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    peer, before = Peer(), asyncio.all_tasks()
    with pytest.raises(RuntimeError, match="broken"):
        await Waiting(answer(), STREAM)({}, peer.receive, peer.send)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_call_that_another_request_cancels_is_answered() -> None:
    begun, peer = asyncio.Event(), Peer()

    async def answer() -> HttpResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    waiting = Waiting(answer(), STREAM, cancelled=HttpResponse(200, [], b"cancelled"))
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

    await Waiting(answer(), STREAM, cancelled=HttpResponse(200, [], b"cancelled"))({}, peer.receive, peer.send)
    assert peer.messages[-1]["body"] == b"done"


async def test_an_event_is_not_written_as_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    peer = Peer()

    async def answer() -> HttpResponse:
        await peer.pinged.wait()
        return HttpResponse(200, [], event(b"{}"))

    await Waiting(answer(), STREAM)({}, peer.receive, peer.send)
    assert peer.messages[-1]["body"] == b"event: message\r\ndata: {}\r\n\r\n"


LIVE = {"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"s1")]}
RESULT = {"type": "http.response.body", "body": b'event: message\r\ndata: {"id":1,"result":{}}\r\n\r\n'}
ERROR = {"type": "http.response.body", "body": b'event: message\r\ndata: {"id":1,"error":{}}\r\n\r\n'}


class Clock:
    """A time that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def scope(method: str = "POST", session: bytes | None = b"s1") -> dict[str, Any]:
    return {"method": method, "headers": [] if session is None else [(b"mcp-session-id", session)]}


async def answer(sessions: LiveSessions, asked: dict[str, Any], *messages: Message, **changes: Any) -> list[Message]:
    """Let the SDK answer a request; return what was sent."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    options = {"method": "tools/call", "agent_id": "ann", **changes}
    observed = sessions.observe(asked, options["method"], options["agent_id"], send)
    for message in messages:
        await observed(message)
    return sent


async def test_a_session_is_known_once_the_sdk_has_answered_a_request_for_tools() -> None:
    sessions = LiveSessions()
    assert await answer(sessions, scope(), LIVE, RESULT) == [LIVE, RESULT]
    found = sessions.find("s1", "ann")
    assert found is not None
    assert found.session_id == "s1"
    assert sessions.find("s1", "bob") is None
    assert sessions.find("s2", "ann") is None
    assert sessions.find(None, "ann") is None


async def test_a_session_whose_client_begins_to_show_credentials_is_that_of_its_agent() -> None:
    sessions = LiveSessions()
    await answer(sessions, scope(), LIVE, RESULT, agent_id=None)
    await answer(sessions, scope(), LIVE, RESULT)
    assert sessions.find("s1", "ann") is not None
    assert sessions.find("s1", None) is None


@pytest.mark.parametrize(
    ("asked", "messages", "changes"),
    [
        (scope(), [LIVE, ERROR], {}),  # before the handshake
        (scope(), [LIVE, RESULT], {"method": "ping"}),
        (scope(), [{**LIVE, "headers": []}, RESULT], {}),  # of the modern era, which ignores the header
        (scope(session=None), [LIVE, RESULT], {}),
    ],
)
async def test_other_answers_tell_nothing(asked: Any, messages: list[Message], changes: dict[str, Any]) -> None:
    sessions = LiveSessions()
    await answer(sessions, asked, *messages, **changes)
    assert sessions.find("s1", "ann") is None


async def test_a_request_passes_through_the_sdk_now_and_then() -> None:
    clock = Clock()
    sessions = LiveSessions(clock)
    await answer(sessions, scope(), LIVE, RESULT)
    clock.now = FRESH + 1
    assert sessions.find("s1", "ann") is None
    await answer(sessions, scope(), LIVE, RESULT)
    assert sessions.find("s1", "ann") is not None


async def running(sessions: LiveSessions) -> asyncio.Task[Any]:
    """Start a call in the session of Ann; its result is the body that is sent in the end."""
    await answer(sessions, scope(), LIVE, RESULT)
    session, begun = sessions.find("s1", "ann"), asyncio.Event()
    assert session is not None

    async def call() -> HttpResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> bytes:
        await session.follow(7, call(), [], HttpResponse(200, [], b"cancelled"))({}, asyncio.Event().wait, send)  # type: ignore[arg-type]
        body: bytes = sent[-1]["body"]
        return body

    task = asyncio.create_task(run())
    await begun.wait()
    return task


@pytest.mark.parametrize("request_id", [7, "7"])
async def test_a_call_is_cancelled_by_its_client(request_id: int | str) -> None:
    sessions = LiveSessions()
    task = await running(sessions)
    sessions.cancel(scope(), "bob", request_id)
    sessions.cancel(scope(session=b"s2"), "ann", request_id)
    sessions.cancel(scope(session=None), "ann", request_id)
    sessions.cancel(scope(), "ann", [request_id])
    sessions.cancel(scope(), "ann", 8)
    assert not task.cancelling()
    sessions.cancel(scope(), "ann", request_id)
    assert await task == b"cancelled"


async def test_the_end_of_a_session_cancels_its_calls() -> None:
    sessions = LiveSessions()
    task = await running(sessions)
    ended = {"type": "http.response.start", "status": 404, "headers": []}
    await answer(sessions, scope(), ended, agent_id="bob")
    assert sessions.find("s1", "ann") is not None
    await answer(sessions, scope(), ended)
    assert sessions.find("s1", "ann") is None
    assert await task == b"cancelled"
    sessions.forget("s1")
