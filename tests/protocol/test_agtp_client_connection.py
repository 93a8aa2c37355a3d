"""One client connection against servers that answer well, badly, late or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
from tests.cases import rows

from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio

OK = b"AGTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"

Scripted = Callable[..., Awaitable[int]]


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    """A server that answers the first requests of each connection with the given bytes and then closes."""
    servers: list[asyncio.Server] = []

    async def start(*answers: bytes) -> int:
        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                for answer in answers:
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(answer)
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(converse, "127.0.0.1", 0)
        servers.append(server)
        return server.sockets[0].getsockname()[1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.requirement("CORE-1-15")
async def test_requests_follow_each_other_on_one_connection(serve) -> None:
    _, port = await serve()
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    for number in range(3):
        response = await connection.request("QUERY", "/a", [("Task-ID", "t")], b"{}")
        assert (response.status, response.body) == (200, b"QUERY /a 2 #%d" % number)
        assert connection.is_reusable
    connection.close()
    assert not connection.is_reusable


async def test_a_server_that_closes_after_its_reply_is_not_asked_again(scripted) -> None:
    port = await scripted(OK)
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    assert (await connection.request("QUERY", "/")).body == b"{}"
    while connection.is_reusable:
        await asyncio.sleep(0.01)
    with pytest.raises(ConnectionResetError):
        await connection.request("QUERY", "/")


@rows(
    "answer",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"AGTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n{}",
    b"AGTP/1.0 200 OK\r\nContent-Le",
    b"AGTP/1.0 200 OK\r\nContent-Length: -5\r\n\r\n",
    b"AGTP/1.0 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
    b"\x00" * 100,
)
async def test_an_answer_that_is_not_agtp_or_breaks_off_is_a_protocol_error(scripted, answer: bytes) -> None:
    connection = await AgtpClientConnection.open("127.0.0.1", await scripted(answer))
    with pytest.raises(RemoteProtocolError):
        await connection.request("QUERY", "/")
    assert not connection.is_reusable


@pytest.mark.requirement("CORE-2.1-5")
@pytest.mark.parametrize("text", [b"", b" ", b" OK", b" Not Found", b" 200 OK", b" \xc3\xa4\t!"])
async def test_the_text_of_a_status_decides_nothing(scripted, text: bytes) -> None:
    connection = await AgtpClientConnection.open(
        "127.0.0.1", await scripted(b"AGTP/1.0 503" + text + b"\r\nContent-Length: 2\r\n\r\n{}")
    )
    response = await connection.request("QUERY", "/")
    assert (response.status, response.body) == (503, b"{}")
    connection.close()


async def test_a_server_that_closes_without_a_byte_is_a_reset(scripted) -> None:
    connection = await AgtpClientConnection.open("127.0.0.1", await scripted(b""))
    with pytest.raises(ConnectionResetError, match="without an answer"):
        await connection.request("QUERY", "/")


async def test_an_answer_beyond_the_limits_is_refused(scripted) -> None:
    connection = await AgtpClientConnection.open("127.0.0.1", await scripted(OK), limits=Limits(body=1))
    with pytest.raises(RemoteProtocolError, match="at most 1"):
        await connection.request("QUERY", "/")


async def test_two_answers_to_one_request_make_the_connection_unusable(scripted) -> None:
    connection = await AgtpClientConnection.open("127.0.0.1", await scripted(OK + OK, OK))
    assert (await connection.request("QUERY", "/")).status == 200
    assert not connection.is_reusable
    connection.abort()


async def test_an_answer_that_takes_too_long_is_a_timeout_and_drops_the_connection(serve) -> None:
    _, port = await serve()
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    with pytest.raises(TimeoutError, match="did not answer QUERY /wait"):
        await connection.request("QUERY", "/wait", read_timeout=0.05)
    assert not connection.is_reusable


async def test_a_cancelled_request_drops_the_connection(serve, handler) -> None:
    _, port = await serve()
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    asking = asyncio.create_task(connection.request("QUERY", "/wait"))
    await handler.waiting.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not connection.is_reusable


async def test_a_second_request_at_the_same_time_is_refused(serve, handler) -> None:
    _, port = await serve()
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    asking = asyncio.create_task(connection.request("QUERY", "/wait"))
    await handler.waiting.wait()
    with pytest.raises(LocalProtocolError):
        await connection.request("QUERY", "/a")
    handler.gate.set()
    assert (await asking).status == 200
    connection.close()


async def test_a_request_that_cannot_be_written_leaves_the_connection_usable(serve) -> None:
    _, port = await serve()
    connection = await AgtpClientConnection.open("127.0.0.1", port)
    with pytest.raises(LocalProtocolError):
        await connection.request("QUERY", "/a b")
    assert (await connection.request("QUERY", "/a")).status == 200
    connection.close()


async def test_refused_connection_is_an_os_error(unused_port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        await AgtpClientConnection.open("127.0.0.1", unused_port)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300, "a..b"])
async def test_a_host_that_does_not_exist_is_an_os_error(host: str) -> None:
    with pytest.raises(OSError):
        await AgtpClientConnection.open(host, 4480)


async def test_connecting_takes_no_longer_than_asked(full_backlog: int) -> None:
    with pytest.raises(TimeoutError, match="No connection to"):
        await AgtpClientConnection.open("127.0.0.1", full_backlog, connect_timeout=0.1)
