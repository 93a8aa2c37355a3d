"""The server around the connections: listening, TLS, an orderly end."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme
from tests.faces.http.test_protocol import THROUGH, Gate
from tests.faces.http.web import BOOK, get, post, serving
from tests.service import make_endpoint

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError
from bespeak.faces.limits import Timeouts
from bespeak.protocol.tls import server_context

pytestmark = pytest.mark.anyio


async def test_every_answer_has_a_date_and_no_server_header() -> None:
    async with serving() as web:
        headers = (await web.ask(post())).headers
        assert headers["date"].endswith("GMT")
        assert "server" not in headers


async def test_a_port_that_is_taken_is_a_fault_of_configuration() -> None:
    async with serving() as web:
        with pytest.raises(ConfigError, match="choose another port"):
            await web.server.start("127.0.0.1", web.port)


@pytest.mark.parametrize("settings", THROUGH)
async def test_draining_finishes_running_requests_and_closes_idle_connections(settings: HttpSettings) -> None:
    gate = Gate()
    slow = make_endpoint("PLAN", "/stay", gate.wait)
    async with serving(BOOK, slow, settings=settings) as web, web.line() as idle, web.line() as busy:
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
    slow = make_endpoint("PLAN", "/stay", gate.wait)
    async with serving(slow, timeouts=Timeouts(drain=0.1), settings=settings) as web, web.line() as line:
        line.send(post("/stay:plan", {}))
        await gate.entered.wait()
        await web.server.drain()
        assert gate.done == 0
        assert web.server.connections == 0


async def test_tls_1_3_is_spoken_with_the_protocol_named() -> None:
    authority = trustme.CA()
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as file:
        context = server_context(file, alpn="http/1.1")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    async with serving(ssl=context) as web, web.line(trusting) as line:
        spoken = line.writer.get_extra_info("ssl_object")
        assert (spoken.version(), spoken.selected_alpn_protocol()) == ("TLSv1.3", "http/1.1")
        assert (await line.ask(get("/rooms/1:find"))).json == {"room_id": "1"}
        assert (await line.ask(b"rubbish\r\n\r\n")).status == 400
        assert await line.ended() == b""


async def test_plain_http_on_a_port_of_tls_ends_without_harm() -> None:
    authority = trustme.CA()
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as file:
        context = server_context(file, alpn="http/1.1")
    async with serving(ssl=context) as web:
        async with web.line() as line:
            line.send(post())
            assert b"200 OK" not in await line.ended()
        assert web.server.connections == 0
