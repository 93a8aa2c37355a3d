"""Admission for every face. The faces' own tests listen, hand out addresses, drain and run out of descriptors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.faces.lines import LineServer, call

from bespeak.faces.timeouts import Timeouts
from bespeak.protocol.exchange.messages import Malformed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[LineServer]:
    server = LineServer(max_connections=2)
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
