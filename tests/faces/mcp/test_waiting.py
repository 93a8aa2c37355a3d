"""Answers that are awaited: sent, kept alive, cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.mcp import sessions
from bespeak.faces.mcp.sessions import Waiting, event

pytestmark = pytest.mark.anyio

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
