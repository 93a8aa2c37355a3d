"""The server as a whole: admission, the cap, exhausted descriptors, crowds, draining."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.cases import rows

from bespeak.agent.client.agtp_transport import Pool
from bespeak.errors import ConfigError
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.connection import INPUT_BOUND
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio
ASK = b"AGTP/1.0 QUERY /a\r\n\r\n"
WAIT = b"AGTP/1.0 QUERY /wait\r\n\r\n"
HURRIED = Timeouts(idle=0.2, read=0.2, write=0.2, linger=0.2)


async def call(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def is_served(port: int) -> bool:
    pool = Pool("127.0.0.1", port)
    response = await pool.request("QUERY", "/a")
    await pool.close()
    return response.status == 200


async def until(condition) -> None:
    """Let the loop run until the condition holds; the test's own timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.01)


async def test_one_server_listens_on_several_addresses_and_two_share_a_port_with_reuse_port(handler) -> None:
    server = AgtpServer(handler)
    bound = [*await server.start("127.0.0.1", 0), *await server.start("127.0.0.1", 0)]
    assert len({port for _, port in bound}) == 2
    for _, port in bound:
        assert await is_served(port)
    await server.close()
    one, other = AgtpServer(handler), AgtpServer(handler)
    [(_, port)] = await one.start("127.0.0.1", 0, reuse_port=True)
    assert await other.start("127.0.0.1", port, reuse_port=True) == [("127.0.0.1", port)]
    await one.close()
    await other.close()


async def test_an_address_that_is_in_use_or_does_not_exist_is_a_clear_error(serve, handler) -> None:
    _, port = await serve()
    with pytest.raises(ConfigError, match=f"Cannot listen on 127.0.0.1:{port}"):
        await AgtpServer(handler).start("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"Cannot listen on no-such-host\.invalid:1"):
        await AgtpServer(handler).start("no-such-host.invalid", 1)


async def test_a_connection_over_the_limit_is_refused_and_closed(serve) -> None:
    server, port = await serve(capacity=Capacity(2))
    kept = [await AgtpClientConnection.open("127.0.0.1", port) for _ in range(2)]
    for connection in kept:
        assert (await connection.request("QUERY", "/a")).status == 200
    reader, writer = await call(port)
    assert (await reader.read()).startswith(b"AGTP/1.0 503 Unavailable\r\n")
    writer.close()
    kept[0].close()
    await until(lambda: server.connections == 1)
    assert await is_served(port)
    kept[1].close()


async def test_five_hundred_half_open_connections_do_not_delay_another(serve) -> None:
    server, port = await serve()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(500)]
    for number, raw in enumerate(silent):
        raw.sendall(b"AGTP/1.0 QUERY /"[: number % 17])
    assert await is_served(port)
    await until(lambda: server.connections >= 500)
    assert await is_served(port)
    for raw in silent:
        raw.close()
    await until(lambda: server.connections == 0)


async def test_draining_lets_a_running_request_finish_and_closes_idle_connections(serve, handler) -> None:
    server, port = await serve()
    idle, busy = await call(port), await call(port)
    busy[1].write(WAIT)
    await handler.waiting.wait()
    draining = asyncio.create_task(server.drain())
    assert await idle[0].read() == b""
    with pytest.raises(ConnectionRefusedError):
        await call(port)
    handler.gate.set()
    assert b"200 OK" in await busy[0].read()
    await draining
    assert server.connections == 0
    for _, writer in (idle, busy):
        writer.close()


async def test_draining_lets_a_partly_received_request_arrive(serve) -> None:
    server, port = await serve()
    reader, writer = await call(port)
    writer.write(ASK + ASK[:5])
    assert (await reader.readline()).startswith(b"AGTP/1.0 200")
    draining = asyncio.create_task(server.drain())
    await asyncio.sleep(0)
    writer.write(ASK[5:])
    assert b"#1" in await reader.read()
    await draining
    writer.close()


async def test_draining_does_not_wait_for_ever(serve, handler) -> None:
    server, port = await serve(timeouts=Timeouts(drain=0.1))
    reader, writer = await call(port)
    writer.write(WAIT)
    await handler.waiting.wait()
    await server.drain()
    assert server.connections == 0
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    assert not handler.finished.is_set()
    writer.close()


EXHAUSTED = """
    import asyncio, resource, sys
    import uvloop
    from bespeak.protocol.exchange.messages import Response
    from bespeak.faces.agtp.server import AgtpServer

    class Handler:
        def __call__(self, request):
            return Response(200, b"ok")

        def malformed(self, fault, connection):
            return Response(fault.status)

    async def main():
        server = AgtpServer(Handler())
        [(_, port)] = await server.start("127.0.0.1", 0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
        print(port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await server.close()

    uvloop.run(main())
"""


@pytest.mark.process
def test_running_out_of_descriptors_neither_kills_nor_spins_the_server() -> None:
    command = [sys.executable, "-c", textwrap.dedent(EXHAUSTED)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        port = int(process.stdout.readline())
        crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        first = process.stderr.readline()
        assert "Cannot accept a connection" in first
        crowd[0].sendall(ASK)
        assert crowd[0].recv(100).startswith(b"AGTP/1.0 200 OK")  # those inside are still served
        crowd[-1].settimeout(10)
        assert crowd[-1].recv(100).startswith(b"AGTP/1.0 503")  # the others are told, although no descriptor is left
        for raw in crowd:
            raw.close()
        while True:
            with socket.create_connection(("127.0.0.1", port)) as late:
                late.sendall(ASK)
                with contextlib.suppress(ConnectionResetError):
                    if late.recv(100).startswith(b"AGTP/1.0 200 OK"):
                        break
        _, rest = process.communicate()
        assert process.returncode == 0
        assert len(rest.splitlines()) < 100
        assert "Traceback" not in rest


class Peer:
    """A client that sends any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(head.split(b" ")[1]), await self.reader.readexactly(length)

    async def is_closed(self) -> bool:
        return await self.reader.read() == b""

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def connection_call(port: int) -> Peer:
    return Peer(*await asyncio.open_connection("127.0.0.1", port))


@contextlib.asynccontextmanager
async def talking(serve: Any, **options: Any) -> AsyncIterator[Peer]:
    """Connect to a new server."""
    _, port = await serve(**options)
    async with await connection_call(port) as peer:
        yield peer


def ask(path: str, body: bytes = b"") -> bytes:
    return b"AGTP/1.0 QUERY %s\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)


@pytest.mark.requirement("CORE-1-9")
async def test_a_connection_stays_open_and_its_answers_are_counted(serve) -> None:
    async with talking(serve) as peer:
        for number in range(3):
            await peer.send(ask("/a"))
            assert await peer.answer() == (200, b"QUERY /a 0 #%d" % number)


async def test_a_request_may_arrive_one_byte_at_a_time(serve) -> None:
    async with talking(serve) as peer:
        for byte in ask("/slow", b"abc"):
            await peer.send(bytes([byte]))
        assert await peer.answer() == (200, b"QUERY /slow 3 #0")


@pytest.mark.requirement("CORE-1-11")
@pytest.mark.parametrize("path", ["/a", "/turn"])
async def test_a_thousand_pipelined_requests_are_answered_in_order(serve, path: str) -> None:
    async with talking(serve) as peer:
        await peer.send(b"".join(ask(path, b"x" * (number % 7)) for number in range(1000)))
        for number in range(1000):
            assert await peer.answer() == (200, b"QUERY %s %d #%d" % (path.encode(), number % 7, number))


async def test_waiting_handlers_hold_back_neither_earlier_answers_nor_other_connections(serve, handler) -> None:
    async with talking(serve) as peer:
        await peer.send(ask("/a") + ask("/wait") + ask("/b"))
        assert await peer.answer() == (200, b"QUERY /a 0 #0")
        handler.gate.set()
        assert await peer.answer() == (200, b"QUERY /wait 0 #1")
        assert await peer.answer() == (200, b"QUERY /b 0 #2")
    _, port = await serve()
    async with await connection_call(port) as one, await connection_call(port) as other:
        await one.send(ask("/wait"))
        await handler.waiting.wait()
        await other.send(ask("/a"))
        assert await other.answer() == (200, b"QUERY /a 0 #0")
        handler.gate.set()
        assert (await one.answer())[0] == 200


async def test_the_handler_learns_the_peer_and_that_it_is_not_secure(serve, handler) -> None:
    async with talking(serve) as peer:
        await peer.send(ask("/a"))
        await peer.answer()
        host, local = peer.writer.get_extra_info("sockname")
    [request] = handler.requests
    assert (request.connection.peer, request.connection.secure) == (f"{host}:{local}", False)


@rows(
    "data, status, code",
    (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, b"invalid-request-line"),
    (b"\r\nAGTP/1.0 QUERY /\r\n\r\n", 400, b"invalid-request-line"),
    (b"AGTP/1.0 QUERY /\xff\r\n\r\n", 400, b"invalid-request-line"),
    (b"AGTP/1.0 QUERY /\x00\r\n\r\n", 400, b"invalid-request-line"),
    (b"AGTP/1.0 QUERY /#a\r\n\r\n", 400, b"invalid-request-line"),
    (b"AGTP/1.0 " + b"A" * 20_000 + b" /\r\n\r\n", 400, b"request-line-too-long"),
    (b"AGTP/1.0 QUERY /\r\nno colon\r\n\r\n", 400, b"invalid-header"),
    (b"AGTP/1.0 QUERY /\r\nAgent-ID: a\r\nAgent-ID: b\r\n\r\n", 400, b"invalid-header"),
    (b"AGTP/1.0 QUERY /\r\nContent-Length: -1\r\n\r\n", 400, b"invalid-content-length"),
    (b"AGTP/1.0 QUERY /\r\nContent-Length: 1000000000000\r\n\r\nx", 413, b"content-too-large"),
    (b"AGTP/1.0 QUERY /\r\n" + b"A: b\r\n" * 200 + b"\r\n", 400, b"head-too-large"),
    (b"AGTP/1.0 QUERY /\r\nX: " + b"a" * 300_000, 400, b"head-too-large"),
    (bytes(range(256)) * 100, 400, b"invalid-request-line"),
)
async def test_invalid_request_is_answered_and_connection_closed(serve, data: bytes, status: int, code: bytes) -> None:
    async with talking(serve) as peer:
        await peer.send(data)
        assert await peer.answer() == (status, code)
        assert await peer.is_closed()


async def test_an_http_client_on_an_agtp_port_is_told_in_its_own_protocol(serve) -> None:
    async with talking(serve) as peer:
        await peer.send(b"GET /rooms HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await peer.reader.readline()).startswith(b"HTTP/1.1 400 ")


async def test_requests_before_a_malformed_one_are_answered_and_limits_are_the_servers(serve) -> None:
    async with talking(serve) as peer:
        await peer.send(ask("/a") + b"nonsense\r\n\r\n" + ask("/b"))
        assert await peer.answer() == (200, b"QUERY /a 0 #0")
        assert await peer.answer() == (400, b"invalid-request-line")
        assert await peer.is_closed()
    async with talking(serve, limits=Limits(body=4)) as peer:
        await peer.send(ask("/a", b"1234") + ask("/a", b"12345"))
        assert (await peer.answer())[0] == 200
        assert await peer.answer() == (413, b"content-too-large")


async def test_a_refused_peer_that_keeps_sending_gets_the_answer_before_it_is_cut_off(serve) -> None:
    async with talking(serve) as peer:
        await peer.send(b"AGTP/1.0 QUERY /\r\nContent-Length: 99999999\r\n\r\n")
        assert await peer.answer() == (413, b"content-too-large")
        await peer.send(b"x" * 500_000)
        assert await peer.is_closed()
    server, port = await serve(timeouts=HURRIED)
    async with await connection_call(port) as peer:
        await peer.send(b"nonsense\r\n\r\n")
        await peer.answer()
        await until(lambda: server.connections == 0)


async def test_half_closed_connections_get_answers_and_truncated_requests_a_refusal(serve, handler) -> None:
    server, port = await serve(timeouts=Timeouts(linger=10_000))
    async with await connection_call(port) as peer:
        await peer.send(ask("/a", b"12345")[:-2])
        peer.writer.write_eof()
        assert await peer.answer() == (400, b"incomplete-message")
        assert await peer.is_closed()
        await until(lambda: server.connections == 0)  # nothing more can come, so nothing is waited for
    async with talking(serve) as peer:
        await peer.send(ask("/wait") + ask("/a"))
        peer.writer.write_eof()
        await handler.waiting.wait()
        handler.gate.set()
        assert [(await peer.answer())[1] for _ in range(2)] == [b"QUERY /wait 0 #0", b"QUERY /a 0 #1"]
        assert await peer.is_closed()


@pytest.mark.parametrize("data", [b"", b"AGTP/1.0 QU", ask("/a", b"12345")[:-2], ask("/wait"), ask("/big?5000000")])
async def test_a_reset_at_any_moment_leaks_nothing(serve, handler, caplog, data: bytes) -> None:
    server, port = await serve()
    peer = await connection_call(port)
    await peer.send(data)
    if b"/wait" in data:
        await handler.waiting.wait()
    peer.reset()
    handler.gate.set()
    if b"/wait" in data:
        await handler.finished.wait()  # a request that has begun is carried out
    await until(lambda: server.connections == 0)
    assert not caplog.records


async def test_an_idle_connection_is_closed_without_a_word(serve) -> None:
    async with talking(serve, timeouts=HURRIED) as peer:
        await peer.send(ask("/a"))
        await peer.answer()
        assert await peer.is_closed()


@pytest.mark.parametrize("part", [b"A", b"AGTP/1.0 QUERY /\r\nX", ask("/a", b"12345")[:-2]])
async def test_a_request_that_is_not_finished_in_time_is_refused(serve, part: bytes) -> None:
    async with talking(serve, timeouts=Timeouts(read=0.2)) as peer:
        await peer.send(part)
        assert await peer.answer() == (408, b"request-timeout")
        assert await peer.is_closed()


async def test_sending_slowly_does_not_stretch_the_time_to_read(serve) -> None:
    _, port = await serve(timeouts=Timeouts(read=0.2))

    async def drip(peer: Peer) -> None:
        await peer.send(b"AGTP/1.0 QUERY /\r\n")
        while True:
            await peer.send(b"X: y\r\n")
            await asyncio.sleep(0.02)

    async with await connection_call(port) as peer:
        dripping = asyncio.create_task(drip(peer))
        assert await peer.answer() == (408, b"request-timeout")
        dripping.cancel()


async def test_a_handler_may_take_longer_than_any_timeout_of_the_peer(serve, handler) -> None:
    _, port = await serve(timeouts=HURRIED)
    async with await connection_call(port) as peer, await connection_call(port) as idle:
        await peer.send(ask("/wait"))
        assert await idle.is_closed()  # the idle timeout has passed once
        handler.gate.set()
        assert await peer.answer() == (200, b"QUERY /wait 0 #0")


async def test_a_peer_that_does_not_read_stops_being_served_and_is_dropped(serve, handler) -> None:
    server, port = await serve(timeouts=Timeouts(write=0.2))
    raw = socket.create_connection(("127.0.0.1", port))
    with raw:
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(raw, ask("/big?1000000") * 200)
        await until(lambda: server.connections == 1)
        await until(lambda: server.connections == 0)
    assert 0 < len(handler.requests) < 200


async def test_a_peer_that_reads_slowly_gets_everything(serve) -> None:
    async with talking(serve, timeouts=Timeouts(write=0.2)) as peer:
        await peer.send(ask("/big?3000000") * 3)
        for _ in range(3):
            assert (await peer.answer())[1] == b"x" * 3_000_000


async def test_reading_pauses_for_a_peer_that_floods_a_waiting_handler(serve, handler) -> None:
    async with talking(serve) as peer:
        await peer.send(ask("/wait"))
        await handler.waiting.wait()
        flood = asyncio.create_task(peer.send(ask("/a", b"x" * 60_000) * 400))
        done, _ = await asyncio.wait([flood], timeout=0.3)
        assert not done  # far more than INPUT_BOUND is still on the peer's side
        assert len(ask("/a", b"x" * 60_000) * 400) > 100 * INPUT_BOUND
        handler.gate.set()
        assert [(await peer.answer())[0] for _ in range(401)] == [200] * 401
        await flood


async def test_a_handler_that_raises_is_logged_and_closes_its_connection_alone(serve, caplog) -> None:
    _, port = await serve()
    async with await connection_call(port) as bad, await connection_call(port) as good:
        with caplog.at_level(logging.ERROR):
            await bad.send(ask("/bug"))
            assert await bad.is_closed()
        assert "a handler never raises" in caplog.text
        await good.send(ask("/a"))
        assert (await good.answer())[0] == 200
