"""The pool: connections are kept, shared out, and replaced when a server closes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bespeak.agent.client.agtp_transport import InProcess, Pool
from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio


class Fickle:
    """A server that answers `per_connection` requests on each connection and closes it at the next, or at once."""

    def __init__(self, per_connection: int, *, at_once: bool) -> None:
        self.per_connection = per_connection
        self.at_once = at_once
        self.connections = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self.per_connection):
            if not await reader.readline():
                break
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"AGTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
        if not self.at_once:
            await reader.read(1)
        writer.close()


@pytest.fixture
async def fickle() -> AsyncIterator:
    servers = []

    async def start(per_connection: int, *, at_once: bool = False) -> tuple[Fickle, Pool]:
        script = Fickle(per_connection, at_once=at_once)
        server = await asyncio.start_server(script.converse, "127.0.0.1", 0)
        pool = Pool("127.0.0.1", server.sockets[0].getsockname()[1])
        servers.append((server, pool))
        return script, pool

    yield start
    for server, pool in servers:
        await pool.close()
        server.close()


async def test_a_connection_is_kept_for_the_next_request(serve) -> None:
    _, port = await serve()
    pool = Pool("127.0.0.1", port)
    bodies = [(await pool.request("QUERY", "/a")).body for _ in range(3)]
    assert bodies == [b"QUERY /a 0 #0", b"QUERY /a 0 #1", b"QUERY /a 0 #2"]
    await pool.close()


async def test_no_more_connections_than_its_size(serve) -> None:
    server, port = await serve()
    pool = Pool("127.0.0.1", port, size=3)
    responses = await asyncio.gather(*(pool.request("QUERY", "/turn") for _ in range(50)))
    assert {response.status for response in responses} == {200}
    assert server.connections <= 3
    await pool.close()


@pytest.mark.requirement("CORE-1-16")
async def test_a_server_that_closes_after_each_reply_is_served_by_new_connections(fickle) -> None:
    script, pool = await fickle(1, at_once=True)
    for _ in range(20):
        assert (await pool.request("QUERY", "/", retry=True)).status == 200
    assert script.connections >= 20


@pytest.mark.requirement("CORE-1-16")
async def test_a_connection_closed_without_warning_is_replaced_when_a_repeat_does_no_harm(fickle) -> None:
    script, pool = await fickle(1)
    assert (await pool.request("QUERY", "/")).status == 200
    assert (await pool.request("QUERY", "/", retry=True)).status == 200
    assert script.connections == 2


async def test_otherwise_the_caller_has_to_decide(fickle) -> None:
    script, pool = await fickle(1)
    assert (await pool.request("BOOK", "/room")).status == 200
    with pytest.raises(ConnectionResetError):
        await pool.request("BOOK", "/room")
    assert script.connections == 1
    assert (await pool.request("BOOK", "/room")).status == 200


async def test_a_fresh_connection_that_fails_is_not_tried_again(fickle) -> None:
    script, pool = await fickle(0)
    with pytest.raises(ConnectionResetError):
        await pool.request("QUERY", "/", retry=True)
    assert script.connections == 1


async def test_a_timeout_drops_the_connection_and_frees_its_place(serve, handler) -> None:
    _, port = await serve()
    pool = Pool("127.0.0.1", port, size=1, read_timeout=0.1)
    with pytest.raises(TimeoutError):
        await pool.request("QUERY", "/wait")
    assert (await pool.request("QUERY", "/a")).body == b"QUERY /a 0 #0"
    await pool.close()


async def test_a_server_that_speaks_something_else_is_a_protocol_error(unused_port: int) -> None:
    async def http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(http, "127.0.0.1", unused_port):
        with pytest.raises(RemoteProtocolError):
            await Pool("127.0.0.1", unused_port).request("QUERY", "/")


async def test_a_handler_answers_as_over_a_socket(serve, handler) -> None:
    _, port = await serve()
    pool, direct = Pool("127.0.0.1", port), InProcess(handler)
    for target in ("/a?b=c", "/turn", "/big?10"):
        asked = ("QUERY", target, [("Task-ID", "t")], b"{}")
        assert await direct.request(*asked) == await pool.request(*asked)
    over_socket, in_process = handler.requests[:2]
    assert (over_socket.path, over_socket.headers) == (in_process.path, in_process.headers)
    await pool.close()


async def test_a_body_beyond_the_limits_is_malformed(handler) -> None:
    response = await InProcess(handler, limits=Limits(body=2)).request("QUERY", "/a", body=b"123")
    assert (response.status, response.body) == (413, b"content-too-large")


async def test_unencodable_request_is_refused(handler) -> None:
    with pytest.raises(LocalProtocolError):
        await InProcess(handler).request("QUERY", "/a#b")


async def test_headers_of_block_and_answer_arrive_together() -> None:
    class Fixed:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("Server-ID", "s")), (("Task-ID", "t"),))

    response = await InProcess(Fixed()).request("QUERY", "/")
    assert response.headers == {"server-id": "s", "task-id": "t", "content-length": "0"}


async def test_a_block_that_breaks_the_head_is_noticed() -> None:
    class Broken:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("No Name", "s")))

    with pytest.raises(RemoteProtocolError):
        await InProcess(Broken()).request("QUERY", "/")
