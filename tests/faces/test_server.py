"""Admission for every face. The faces' own tests listen, hand out addresses, drain and run out of descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from tests.faces.lines import LineServer, call

from bespeak.errors import ConfigError
from bespeak.faces.limits import REFUSED, Capacity, Timeouts
from bespeak.faces.server import open_listeners, reserve_port
from bespeak.protocol.address import Address
from bespeak.protocol.exchange.messages import Malformed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[LineServer]:
    server = LineServer(Capacity(2))
    yield server
    await server.close()


async def test_requests_of_disconnected_peers_count_against_the_limit_until_they_end(server: LineServer) -> None:
    gone = [await call(server) for _ in range(2)]
    for _, writer in gone:
        writer.write(b"wait\n")
    while len(server.seen) < 2:
        await asyncio.sleep(0.01)
    for _, transport in server.seen:
        transport.abort()  # type: ignore[attr-defined]
    while server.connections:
        await asyncio.sleep(0.01)
    reader, writer = await call(server)
    assert await reader.read() == b"too-many-connections\n"
    writer.close()
    server.gate.set()
    while server.done < 2:
        await asyncio.sleep(0.01)
    reader, writer = await call(server)
    writer.write(b"last\n")
    assert await reader.read() == b"last\n"
    for _, each in (*gone, (reader, writer)):
        each.close()


async def test_a_deadline_that_fails_leaves_the_others_in_force(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(LineServer):
        def refuse(self, fault: Malformed) -> bytes:
            raise ZeroDivisionError

    server = Faulty(timeouts=Timeouts(idle=0.2, read=0.2))
    for begun in (b"half of a li", b"", b"half"):
        reader, writer = await call(server)
        writer.write(begun)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
    assert "ZeroDivisionError" in caplog.text
    await server.close()


async def test_a_refused_peer_reads_the_refusal_although_it_has_sent_a_request(server: LineServer) -> None:
    kept = [await call(server) for _ in range(2)]
    while server.connections < 2:
        await asyncio.sleep(0.01)
    for _ in range(2 * REFUSED):
        reader, writer = await call(server)
        writer.write(b"hello\n" * 1000)
        assert await reader.read() == b"too-many-connections\n"
        writer.close()
    kept[0][1].write(b"hello\n")
    assert await kept[0][0].readline() == b"hello\n"
    for _, writer in kept:
        writer.close()


async def test_a_full_server_closes_silent_connections_and_keeps_those_that_were_answered() -> None:
    server = LineServer(Capacity(2), timeouts=Timeouts(crowded=0.1))
    reader, writer = await call(server)
    writer.write(b"a\n")
    assert await reader.readline() == b"a\n"
    silent = await call(server)
    async with asyncio.timeout(10):
        while True:
            late = await call(server)
            late[1].write(b"b\n")
            if await late[0].readline() == b"b\n":
                break
            late[1].close()
        assert await silent[0].read() == b"too-many-connections\n"
    writer.write(b"c\n")
    assert await reader.readline() == b"c\n"
    for _, each in ((reader, writer), silent, late):
        each.close()
    await server.close()


async def test_faces_that_share_a_capacity_share_its_connections() -> None:
    capacity = Capacity(1)
    one, other = LineServer(capacity), LineServer(capacity)
    _, writer = await call(one)
    while not one.connections:
        await asyncio.sleep(0.01)
    reader, refused = await call(other)
    assert await reader.read() == b"too-many-connections\n"
    for each in (writer, refused):
        each.close()
    for server in (one, other):
        await server.close()


def burst(port: int, count: int) -> list[socket.socket]:
    """Connect so often in one turn of the loop."""
    return [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(count)]


async def until_empty(server: LineServer) -> None:
    """Wait until no connection has a place."""
    async with asyncio.timeout(10):
        while any(crowd.count for crowd in server.capacity.crowds) or server.capacity.refused:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("secure", [False, True])
async def test_burst_of_empty_connections_leaves_every_place_free(secure: bool) -> None:
    served, trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority = trustme.CA()
    authority.issue_cert("localhost").configure_cert(served)
    authority.configure_trust(trusted)
    server = LineServer(Capacity(100))
    [(_, port)] = await server.start("127.0.0.1", 0, ssl=served if secure else None)
    for _ in range(3):
        peers = burst(port, 300)
        for _ in range(50):  # until all are accepted
            await asyncio.sleep(0)
        for peer in peers:
            peer.close()
        await until_empty(server)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusted if secure else None, server_hostname="localhost" if secure else None
    )
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"
    writer.close()
    await server.close()


async def test_every_peer_of_a_burst_above_the_limit_is_told(server: LineServer) -> None:
    kept = [await call(server) for _ in range(2)]
    while server.connections < 2:
        await asyncio.sleep(0.01)
    peers = burst(server.port, 40)
    assert {await asyncio.to_thread(peer.recv, 100) for peer in peers} == {b"too-many-connections\n"}
    for peer in peers:
        peer.close()
    for _, writer in kept:
        writer.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(1, 12)),
        st.tuples(st.just("ask"), st.integers(0, 40)),
        st.tuples(st.just("wait for an answer"), st.integers(0, 40)),
        st.tuples(st.just("close"), st.integers(0, 40)),
        st.tuples(st.just("reset"), st.integers(0, 40)),
        st.tuples(st.just("turn"), st.integers(1, 4)),
    ),
    max_size=30,
)


@given(STEPS)
def test_places_in_use_are_the_open_connections(steps: list[tuple[str, int]]) -> None:
    async def run() -> None:
        server = LineServer(Capacity(4))
        [(_, port)] = await server.start("127.0.0.1", 0)
        peers: list[socket.socket] = []
        for step, number in steps:
            if step == "arrive":
                peers += burst(port, number)
            elif step == "turn":
                for _ in range(number):
                    await asyncio.sleep(0)
            elif number < len(peers):
                with contextlib.suppress(OSError):  # the server may have closed it
                    if step == "close":
                        peers.pop(number).close()
                    elif step == "reset":
                        peers[number].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                        peers.pop(number).close()
                    else:
                        peers[number].send(b"wait\n" if step == "wait for an answer" else b"hello\n")
        for peer in peers:
            peer.close()
        server.gate.set()
        await until_empty(server)
        await server.close()

    uvloop.run(run())


@pytest.mark.parametrize("shared", [False, True])
async def test_a_reserved_port_can_be_listened_on(shared: bool) -> None:
    placeholder, address = reserve_port(Address("127.0.0.1", 0), shared=shared)
    with placeholder:
        assert address.port
        [listener] = await open_listeners(address.host, address.port, reuse_port=shared)
        with listener, socket.create_connection((address.host, address.port), 5):
            pass


async def test_a_port_in_use_cannot_be_reserved() -> None:
    [listener] = await open_listeners("127.0.0.1", 0)
    with listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match="choose another port"):
            await open_listeners("127.0.0.1", port)
        with pytest.raises(ConfigError, match="choose another port"):
            reserve_port(Address("127.0.0.1", port), shared=True)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
async def test_a_name_without_an_address_is_a_fault_of_configuration(host: str) -> None:
    with pytest.raises(ConfigError, match=f"Cannot listen on {host}:1"):
        await open_listeners(host, 1)
    with contextlib.suppress(socket.gaierror), pytest.raises(ConfigError):
        reserve_port(Address(host, 1), shared=False)
