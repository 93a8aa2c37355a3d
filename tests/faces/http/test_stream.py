"""Responses in parts, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from tests.faces.http.web import Web, post, serving

from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.reader import Head
from bespeak.faces.http.server import PROMPTED
from bespeak.protocol.exchange.messages import Connection, Malformed

pytestmark = pytest.mark.anyio

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


class Events:
    """An application that sends a part whenever it is told to; None is the end."""

    def __init__(self) -> None:
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.body = b""
        self.sent = 0

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        self.body = (await receive())["body"]
        self.asked.set()
        leaving = asyncio.ensure_future(receive())
        leaving.add_done_callback(lambda _: self.left.set())
        await send(START)
        while (part := await self.parts.get()) is not None:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            self.sent += 1
        leaving.cancel()
        await send({"type": "http.response.body"})


@asynccontextmanager
async def events() -> AsyncIterator[tuple[Events, Web]]:
    app = Events()
    async with serving(streamed={"/events": app}) as web:
        yield app, web


async def test_parts_arrive_as_they_are_sent_and_the_next_request_is_answered_after_them() -> None:
    async with events() as (app, web), web.line() as line:
        line.send(post("/events", {"a": 1}) + post("/room:book", {"room_id": "12"}))
        head = await line._reader.readuntil(b"\r\n\r\n")
        app.parts.put_nowait(b"one")
        assert b"transfer-encoding: chunked\r\n" in head
        assert b"content-length" not in head
        assert await line._reader.readexactly(8) == b"3\r\none\r\n"
        app.parts.put_nowait(b"")
        app.parts.put_nowait(b"eleven more")
        assert await line._reader.readexactly(16) == b"b\r\neleven more\r\n"
        app.parts.put_nowait(None)
        assert await line._reader.readexactly(5) == b"0\r\n\r\n"
        assert (await line.answer()).json == {"room_id": "12"}
        assert app.body == b'{"a": 1}'


async def test_a_response_with_a_length_is_not_chunked() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({**START, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"who", "more_body": True})
        await send({"type": "http.response.body", "body": b"le"})

    async with serving(streamed={"/one": app}) as web:
        answer = await web.ask(post("/one"))
    assert answer.body == b"whole"
    assert "transfer-encoding" not in answer.headers


async def test_the_end_of_the_connection_ends_a_response_to_http_1_0() -> None:
    async with events() as (app, web), web.line() as line:
        line.send(b"POST /events HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        for part in (b"one", b"two", None):
            app.parts.put_nowait(part)
        received = await line.ended()
    assert received.endswith(b"\r\n\r\nonetwo")
    assert b"chunked" not in received


async def test_an_application_is_told_that_its_peer_is_gone() -> None:
    async with events() as (app, web):
        async with web.line() as line:
            line.send(post("/events"))
            await asyncio.wait_for(app.asked.wait(), 20)
        await asyncio.wait_for(app.left.wait(), 20)
        app.parts.put_nowait(b"dropped")
        app.parts.put_nowait(None)


async def test_a_peer_that_ends_its_input_leaves_the_stream() -> None:
    async with events() as (app, web), web.line() as line:
        line.send(post("/events"))
        await asyncio.wait_for(app.asked.wait(), 20)
        line.writer.write_eof()
        await asyncio.wait_for(app.left.wait(), 20)
        app.parts.put_nowait(None)


async def test_streams_end_when_the_server_stops() -> None:
    async with events() as (app, web), web.line() as line:
        line.send(post("/events"))
        await asyncio.wait_for(app.asked.wait(), 20)
        draining = asyncio.create_task(web.server.drain())
        await asyncio.wait_for(app.left.wait(), 20)
        app.parts.put_nowait(None)
        await asyncio.wait_for(draining, 20)
        assert (await line.ended()).endswith(b"0\r\n\r\n")


async def test_an_application_may_leave_a_response_incomplete_when_its_stream_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        begun.set()
        await receive()

    async with serving(streamed={"/events": app}) as web, web.line() as line:
        line.send(post("/events"))
        await asyncio.wait_for(begun.wait(), 20)
        await asyncio.wait_for(web.server.drain(), 20)
        assert not (await line.ended()).endswith(b"0\r\n\r\n")
    assert caplog.records == []


async def test_an_application_waits_while_its_peer_does_not_read() -> None:
    async with events() as (app, web), web.line() as line:
        line.send(post("/events"))
        for _ in range(40):
            app.parts.put_nowait(bytes(1_000_000))
        app.parts.put_nowait(None)
        seen = -1
        while app.sent != seen or app.sent == 0:
            seen = app.sent
            for _ in range(200):
                await asyncio.sleep(0)
        assert app.sent < 40
        received = 0
        async with asyncio.timeout(60):
            while app.sent < 40 or not app.parts.empty():
                received += len(await line._reader.read(1_000_000))
    assert received > 10_000_000


@pytest.mark.parametrize("begins", [False, True])
async def test_a_failure_is_not_shown_and_ends_a_response_that_has_begun(begins: bool) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        if begins:
            await send(START)
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
        raise RuntimeError("secret")

    async with serving(streamed={"/broken": app}) as web, web.line() as line:
        line.send(post("/broken"))
        received = await line.ended()
    assert received.startswith(b"HTTP/1.1 200" if begins else b"HTTP/1.1 500")
    assert received.endswith(b"3\r\none\r\n") is begins
    assert b"secret" not in received


class Prompt:
    """An application that answers at once if a header says so, or by another application."""

    def __init__(self) -> None:
        self.prompted: list[bool] = []

    def answer(self, head: Head, body: bytes, peer: Connection) -> HttpResponse | Application | None:
        assert not isinstance(head.headers, Malformed)
        match head.headers.get("x-way"):
            case "at once":
                return HttpResponse(
                    200, [(b"content-length", b"%d" % len(body)), (b"x-face", peer.face.encode())], body
                )
            case "apart":
                return partial(self._send, b"apart")
            case "broken":
                raise RuntimeError("broken")
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.prompted.append(scope["state"][PROMPTED])
        await self._send(b"as usual", scope, receive, send)

    async def _send(self, body: bytes, _: Scope, __: Receive, send: Send) -> None:
        await send_response(HttpResponse(200, [(b"content-length", b"%d" % len(body))], body), "POST", send)


async def test_an_application_may_answer_at_once() -> None:
    app = Prompt()
    async with serving(streamed={"/prompt": app}) as web, web.line() as line:
        ways = ["at once", "apart", "other", "at once"]
        line.send(b"".join(post("/prompt", b"now", f"X-Way: {way}") for way in ways))
        answers = [await line.answer() for _ in ways]
        broken = await web.ask(post("/prompt", b"now", "X-Way: broken"))
    assert [answer.body for answer in answers] == [b"now", b"apart", b"as usual", b"now"]
    assert answers[0].headers["x-face"] == "http"
    assert app.prompted == [True]
    assert broken.status == 500
    assert b"Traceback" not in broken.body
