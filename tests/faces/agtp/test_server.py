"""The server as a whole: admission, the cap, exhausted descriptors, crowds, draining."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import textwrap

import pytest

from bespeak.agent.client.agtp_transport import Pool
from bespeak.errors import ConfigError
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.agtp_client_connection import AgtpClientConnection

pytestmark = pytest.mark.anyio

ASK = b"AGTP/1.0 QUERY /a\r\n\r\n"
WAIT = b"AGTP/1.0 QUERY /wait\r\n\r\n"


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


async def test_one_server_listens_on_several_addresses(handler) -> None:
    server = AgtpServer(handler)
    bound = [*await server.start("127.0.0.1", 0), *await server.start("127.0.0.1", 0)]
    assert len({port for _, port in bound}) == 2
    for _, port in bound:
        assert await is_served(port)
    await server.close()


async def test_two_servers_share_a_port_with_reuse_port(handler) -> None:
    one, other = AgtpServer(handler), AgtpServer(handler)
    [(_, port)] = await one.start("127.0.0.1", 0, reuse_port=True)
    assert await other.start("127.0.0.1", port, reuse_port=True) == [("127.0.0.1", port)]
    await one.close()
    await other.close()


async def test_an_address_in_use_is_a_clear_error(serve, handler) -> None:
    _, port = await serve()
    with pytest.raises(ConfigError, match=f"Cannot listen on 127.0.0.1:{port}"):
        await AgtpServer(handler).start("127.0.0.1", port)


async def test_a_host_that_does_not_exist_is_a_clear_error(handler) -> None:
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
