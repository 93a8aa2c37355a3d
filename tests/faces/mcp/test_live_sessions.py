"""Sessions of earlier revisions: which of them the lane may use, and what is cancelled in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.mcp.sessions import FRESH, LiveSessions

pytestmark = pytest.mark.anyio

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
