"""Admission for every face. The faces' own tests listen, hand out addresses, drain and run out of descriptors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.faces.lines import LineServer, call

from bespeak.faces.capacity import REFUSED, Capacity
from bespeak.faces.timeouts import Timeouts
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
