"""The server around the connections: listening, TLS, an orderly end."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trustme
from tests.faces.http.web import BOOK, FIND, Web, get, post, serving
from tests.service import echo, make_endpoint

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError
from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.reader import HttpHead
from bespeak.faces.http.server import PROMPTED
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.tls import server_context
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio
QUICK = Timeouts(idle=0.4, read=0.4, write=0.4, drain=5.0, linger=0.4)
THROUGH = [HttpSettings(), HttpSettings(cors=("https://shop.example",))]
"""The straight way to the face, and the one through an application."""
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


class Gate:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.endpoint = make_endpoint("PLAN", "/stay", self.wait)
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.done = 0

    async def wait(self, input: dict[str, object]) -> dict[str, object]:  # noqa: A002
        self.entered.set()
        await self.open.wait()
        self.done += 1
        return dict(input)

    async def let_go(self) -> None:
        await self.entered.wait()
        self.open.set()


@pytest.mark.parametrize("settings", THROUGH)
async def test_requests_of_one_connection_are_answered_in_order(settings: HttpSettings) -> None:
    gate = Gate()
    async with serving(BOOK, FIND, gate.endpoint, settings=settings) as web, web.line() as line:
        line.send(post("/stay:plan", {}) + b"".join(post("/room:book", {"guests": number}) for number in range(200)))
        await gate.let_go()
        assert (await line.answer()).json == {}
        for number in range(200):
            answer = await line.answer()
            assert (answer.status, answer.json) == (200, {"guests": number})


@pytest.mark.parametrize("settings", THROUGH)
@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_a_request_may_arrive_in_pieces(settings: HttpSettings, piece: int) -> None:
    request = post("/room:book", {"room_id": "12"})
    async with serving(settings=settings) as web, web.line() as line:
        for start in range(0, len(request), piece):
            line.send(request[start : start + piece])
            await asyncio.sleep(0)
        assert (await line.answer()).json == {"room_id": "12"}
        assert (await line.ask(request)).status == 200


@pytest.mark.parametrize("settings", THROUGH)
async def test_chunked_bodies_head_and_upgrades_are_answered(settings: HttpSettings) -> None:
    head = b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    lines = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    async with serving(settings=settings) as web, web.line() as line:
        answer = await line.ask(head + b'8;note=x\r\n{"guests\r\n5\r\n": 2}\r\n0\r\n\r\n')
        assert (answer.status, answer.json) == (200, {"guests": 2})
        assert (await line.ask(post("/room:book", {}))).status == 200
        whole = await line.ask(get("/rooms/7:find"))
        line.send(post("/rooms/7:find", None, method="HEAD"))
        bare = await line.answer(head_only=True)
        assert (bare.status, bare.headers["content-length"]) == (200, str(len(whole.body)))
        assert (await line.ask(get("/rooms/8:find"))).json == {"room_id": "8"}
        answer = await line.ask(post("/room:book", {"guests": 4}, *lines))
        assert (answer.status, answer.json) == (200, {"guests": 4})
        assert (await line.ask(post("/room:book", {"guests": 5}))).json == {"guests": 5}


async def test_trailers_add_no_headers() -> None:
    endpoint = make_endpoint("BOOK", "/room", echo, scopes=("room:book",))
    head = b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    agent = b"Agent-ID: " + b"a" * 64
    async with serving(endpoint) as web:
        answer = await web.ask(head + b"2\r\n{}\r\n0\r\n" + agent + b"\r\nAuthority-Scope: room:book\r\n\r\n")
        assert answer.status == 401


@pytest.mark.parametrize("settings", THROUGH)
async def test_leave_to_send_a_body_is_given_where_the_body_is_wanted(settings: HttpSettings) -> None:
    request = post("/room:book", {"guests": 2}, "Expect: 100-continue")
    head, _, body = request.partition(b"\r\n\r\n")
    async with serving(settings=settings, limits=Limits(body=100)) as web, web.line() as line:
        assert (await line.ask(head + b"\r\n\r\n")).status == 100
        assert (await line.ask(body)).json == {"guests": 2}
        large = post("/room:book", b" " * 101, "Expect: 100-continue").partition(b"\r\n\r\n")[0]
        answer = await line.ask(large + b"\r\n\r\n")
        assert (answer.status, answer.json["code"]) == (413, "content-too-large")


async def test_expectations_are_met_and_faults_answered_in_their_turn() -> None:
    gate = Gate()
    head, _, body = post("/room:book", {"guests": 3}, "Expect: 100-continue").partition(b"\r\n\r\n")
    async with serving(BOOK, gate.endpoint) as web, web.line() as line:
        line.send(post("/stay:plan", {}) + head + b"\r\n\r\n")
        await gate.let_go()
        assert (await line.answer()).status == 200
        assert (await line.answer()).status == 100
        assert (await line.ask(body)).json == {"guests": 3}
    gate = Gate()
    async with serving(gate.endpoint) as web, web.line() as line:
        line.send(post("/stay:plan", {}) + b"rubbish\r\n\r\n")
        await gate.let_go()
        assert (await line.answer()).status == 200
        assert (await line.answer()).status == 400
        assert await line.ended() == b""


MALFORMED = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "words": (b"hello there\r\n\r\n", 400),
    "AGTP": (b"AGTP/1.0 BOOK /room\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "another version": (b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 505),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    "two agents": (post("/room:book", {}, "Agent-ID: a", "Agent-ID: b"), 400),
    "negative length": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
    "no number": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nContent-Length: one\r\n\r\n", 400),
    "huge number": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n", 400),
    "two lengths": (post("/room:book", {}, "Content-Length: 2"), 400),
    "length and chunks": (post("/room:book", {}, "Transfer-Encoding: chunked"), 400),
    "coded": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "bad chunk": (b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "huge chunk": (
        b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"F" * 20 + b"\r\n",
        400,
    ),
    "folded": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 400),
    "control character": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: \x01\r\n\r\n", 400),
    "blank in name": (b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
    "expectation": (post("/room:book", {}, "Expect: miracles"), 417),
    "web socket": (get("/", "Connection: Upgrade", "Upgrade: websocket"), 501),
    "tunnel": (b"CONNECT example.com:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
    "long target": (get("/" + "x" * 9000), 414),
    "many headers": (get("/", *(f"A{number}: b" for number in range(200))), 431),
    "a large head": (get("/", *(f"A{number}: {'b' * 1000}" for number in range(100))), 431),
}


@pytest.mark.parametrize("settings", THROUGH)
@pytest.mark.parametrize(("request_bytes", "number"), MALFORMED.values(), ids=MALFORMED.keys())
async def test_invalid_request_is_refused_as_problem(settings: HttpSettings, request_bytes: bytes, number: int) -> None:
    async with serving(settings=settings) as web, web.line() as line:
        answer = await line.ask(request_bytes)
        assert (answer.status, answer.headers["content-type"]) == (number, "application/problem+json")
        assert (answer.headers["connection"], answer.json["status"]) == ("close", number)
        assert answer.json["code"]
        assert answer.json["detail"]
        assert await line.ended() == b""


@pytest.mark.parametrize("chunk", [b"64\r\n" + b" " * 100 + b"\r\n", b"1;" + b"x" * 1000 + b"\r\n \r\n"])
async def test_a_body_without_an_end_is_refused_as_soon_as_it_is_too_large(chunk: bytes) -> None:
    head = b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serving(limits=Limits(head=2000, body=1000)) as web, web.line() as line:
        line.send(head)
        for _ in range(100):
            line.send(chunk)
            await asyncio.sleep(0)
        answer = await line.answer()
        assert answer.status in (400, 413)
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("started", [b"POST /room:book HTTP/1.1\r\nHo", post("/room:book", b"{" * 10)[:-5]])
async def test_a_slow_request_is_given_up(started: bytes) -> None:
    async with serving(timeouts=QUICK) as web, web.line() as line:
        line.send(started)
        answer = await line.answer()
        assert (answer.status, answer.json["code"]) == (408, "request-timeout")
        assert await line.ended() == b""


async def test_a_trickle_does_not_stretch_the_time_for_a_request() -> None:
    async with serving(timeouts=QUICK) as web, web.line() as line:

        async def trickle() -> None:
            line.send(b"POST /room:book HTTP/1.1\r\nHost: localhost\r\nA: ")
            while True:
                line.send(b"x")
                await asyncio.sleep(0.02)

        task = asyncio.ensure_future(trickle())
        try:
            assert (await line.answer()).status == 408
        finally:
            task.cancel()


async def test_a_pending_answer_does_not_extend_the_deadline_of_the_next_request() -> None:
    patient = Timeouts(idle=15.0, read=0.4)
    async with serving(timeouts=patient) as web, web.line() as other, web.line() as line:
        await other.ask(get("/rooms/1:find"))  # with more than one connection answers are written later
        line.send(get("/rooms/1:find") + b"GET /rooms/2:find HTTP/1.1\r\nHost")
        assert (await line.answer()).status == 200
        async with asyncio.timeout(10):
            assert (await line.answer()).status == 408


@pytest.mark.parametrize("settings", THROUGH)
async def test_an_idle_connection_is_closed_without_a_word(settings: HttpSettings) -> None:
    async with serving(timeouts=QUICK, settings=settings) as web, web.line() as unused, web.line() as used:
        assert (await used.ask(post())).status == 200
        assert await used.ended() == b""
        assert await unused.ended() == b""


@pytest.mark.parametrize("settings", THROUGH)
async def test_a_running_request_has_no_deadline(settings: HttpSettings) -> None:
    gate = Gate()
    async with serving(gate.endpoint, timeouts=QUICK, settings=settings) as web, web.line() as line:
        line.send(post("/stay:plan", {}))
        await gate.entered.wait()
        await asyncio.sleep(1.5 * QUICK.idle)
        gate.open.set()
        assert (await line.answer()).status == 200


async def test_a_peer_that_takes_no_answers_is_let_go() -> None:
    big = make_endpoint("FIND", "/rooms", lambda: {"text": "x" * 200_000})
    async with serving(big, timeouts=QUICK) as web, web.line() as line:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        line.send(b"".join(get("/rooms:find") for _ in range(400)))
        async with asyncio.timeout(20):
            while not web.server.connections:
                await asyncio.sleep(0.01)
            while web.server.connections:
                await asyncio.sleep(0.05)


async def test_a_connection_over_the_limit_is_refused() -> None:
    async with serving(capacity=Capacity(1)) as web, web.line() as first:
        assert (await first.ask(post())).status == 200
        async with web.line() as second:
            answer = await second.answer()
            assert (answer.status, answer.json["code"]) == (503, "too-many-connections")
        assert (await first.ask(post())).status == 200


async def test_an_unfinished_request_is_refused_if_others_need_its_memory() -> None:
    body = b"x" * 60_000
    unfinished = b"POST /room:book HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60001\r\n\r\n" + body
    async with serving(capacity=Capacity(buffered=100_000)) as web, web.line() as first, web.line() as second:
        first.send(unfinished)
        second.send(unfinished)
        answer = await first.answer()
        assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (503, "too-many-bytes", "5")
        async with web.line() as third:
            assert (await third.ask(post())).status == 200


async def test_half_a_connection_still_gets_its_answer() -> None:
    gate = Gate()
    async with serving(gate.endpoint) as web, web.line() as line:
        line.send(post("/stay:plan", {}))
        line.writer.write_eof()
        await gate.let_go()
        assert (await line.answer()).status == 200
        assert await line.ended() == b""


async def test_a_started_request_is_carried_out_although_the_peer_has_disconnected() -> None:
    gate = Gate()
    async with serving(gate.endpoint) as web:
        async with web.line() as line:
            line.send(post("/stay:plan", {}))
            await gate.entered.wait()
            # Closing then resets the connection, where a plain end would leave the other direction open.
            line.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        async with asyncio.timeout(10):
            while web.server.connections:
                await asyncio.sleep(0.01)
        gate.open.set()
        await web.server.drain()
        assert gate.done == 1


@pytest.mark.parametrize("settings", THROUGH)
async def test_targets_have_several_forms_and_connections_are_closed_on_demand(settings: HttpSettings) -> None:
    async with serving(settings=settings) as web:
        assert (await web.ask(get("http://localhost/rooms/1:find"))).json == {"room_id": "1"}
        assert (await web.ask(get("/rooms/a%2Fb:find?guests=2"))).json == {"room_id": "a/b", "guests": 2}
        assert (await web.ask(get("/rooms/x:find?room_id=x&guests=+3"))).status == 422
        assert (await web.ask(post("*", None, method="OPTIONS"))).status == 204
        for last in (post("/room:book", {}, "Connection: close"), b"GET /rooms/1:find HTTP/1.0\r\n\r\n"):
            async with web.line() as line:
                answer = await line.ask(last)
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert await line.ended() == b""


async def test_a_failure_of_the_face_itself_is_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        web.face.admit = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        answer = await web.ask(post())
        assert (answer.status, answer.json["code"]) == (500, "server-error")
        assert "ZeroDivisionError" not in answer.body.decode()
    assert "The HTTP face failed" in caplog.text


async def test_answers_have_a_date_and_no_server_header_and_a_taken_port_is_a_fault_of_configuration() -> None:
    async with serving() as web:
        headers = (await web.ask(post())).headers
        assert headers["date"].endswith("GMT")
        assert "server" not in headers
        with pytest.raises(ConfigError, match="choose another port"):
            await web.server.start("127.0.0.1", web.port)


@pytest.mark.parametrize("settings", THROUGH)
async def test_draining_finishes_running_requests_and_closes_idle_connections(settings: HttpSettings) -> None:
    gate = Gate()
    async with serving(BOOK, gate.endpoint, settings=settings) as web, web.line() as idle, web.line() as busy:
        assert (await idle.ask(post())).status == 200
        busy.send(post("/stay:plan", {}))
        await gate.entered.wait()
        draining = asyncio.ensure_future(web.server.drain())
        assert await idle.ended() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", web.port)
        gate.open.set()
        answer = await busy.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        await draining
        assert web.server.connections == 0


async def test_draining_waits_for_a_request_that_has_begun_to_arrive() -> None:
    async with serving() as web, web.line() as line:
        request = post("/room:book", {"guests": 2})
        line.send(request[:30])
        await asyncio.sleep(0.05)
        draining = asyncio.ensure_future(web.server.drain())
        await asyncio.sleep(0.05)
        answer = await line.ask(request[30:])
        assert (answer.json, answer.headers["connection"]) == ({"guests": 2}, "close")
        await draining


@pytest.mark.parametrize("settings", THROUGH)
async def test_a_request_that_exceeds_the_drain_timeout_is_cancelled(settings: HttpSettings) -> None:
    gate = Gate()
    async with serving(gate.endpoint, timeouts=Timeouts(drain=0.1), settings=settings) as web, web.line() as line:
        line.send(post("/stay:plan", {}))
        await gate.entered.wait()
        await web.server.drain()
        assert gate.done == 0
        assert web.server.connections == 0


def secured() -> tuple[trustme.CA, ssl.SSLContext]:
    authority = trustme.CA()
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as file:
        return authority, server_context(file, alpn="http/1.1")


async def test_tls_1_3_is_spoken_with_the_protocol_named_and_plain_http_ends_without_harm() -> None:
    authority, context = secured()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    async with serving(ssl=context) as web, web.line(trusting) as line:
        spoken = line.writer.get_extra_info("ssl_object")
        assert (spoken.version(), spoken.selected_alpn_protocol()) == ("TLSv1.3", "http/1.1")
        assert (await line.ask(get("/rooms/1:find"))).json == {"room_id": "1"}
        assert (await line.ask(b"rubbish\r\n\r\n")).status == 400
        assert await line.ended() == b""
    async with serving(ssl=secured()[1]) as web:
        async with web.line() as line:
            line.send(post())
            assert b"200 OK" not in await line.ended()
        assert web.server.connections == 0


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


@pytest.mark.parametrize("number", [204, 304])
async def test_a_response_of_an_application_that_has_no_body_has_no_chunk_either(number: int) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({**START, "status": number})
        await send({"type": "http.response.body", "body": b""})

    async with serving(streamed={"/none": app}) as web, web.line() as line:
        line.send(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n" + post("/room:book", {"room_id": "12"}))
        head = await line._reader.readuntil(b"\r\n\r\n")
        assert b"chunked" not in head
        assert (await line.answer()).json == {"room_id": "12"}


async def test_a_response_has_a_length_or_is_ended_by_the_end_of_the_connection() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({**START, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"who", "more_body": True})
        await send({"type": "http.response.body", "body": b"le"})

    async with serving(streamed={"/one": app}) as web:
        answer = await web.ask(post("/one"))
    assert answer.body == b"whole"
    assert "transfer-encoding" not in answer.headers
    async with events() as (app, web), web.line() as line:
        line.send(b"POST /events HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        for part in (b"one", b"two", None):
            app.parts.put_nowait(part)
        received = await line.ended()
    assert received.endswith(b"\r\n\r\nonetwo")
    assert b"chunked" not in received


@pytest.mark.parametrize("half", [False, True])
async def test_an_application_is_told_that_its_peer_is_gone_or_has_ended_its_input(half: bool) -> None:
    async with events() as (app, web), web.line() as line:
        line.send(post("/events"))
        await asyncio.wait_for(app.asked.wait(), 20)
        line.writer.write_eof() if half else line.writer.close()
        await asyncio.wait_for(app.left.wait(), 20)
        app.parts.put_nowait(b"dropped")
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


async def test_an_application_may_leave_its_last_response_incomplete(caplog: pytest.LogCaptureFixture) -> None:
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

    def answer(self, head: HttpHead, body: bytes, peer: Connection) -> HttpResponse | Application | None:
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
