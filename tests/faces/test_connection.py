"""The core of every face, with the smallest face there is: a line is a request. The faces' own tests do the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.faces.lines import Lines, LineServer, call

from bespeak.faces.connection import BATCH_ANSWERS, LARGE, RequestParser
from bespeak.faces.http.reader import HttpRequestReader as HttpReader
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.translation import RequestReader as AgtpReader
from bespeak.protocol.wire.messages import NEED_DATA, Limits, Pause

pytestmark = pytest.mark.anyio
KIB = 1024
SPACE = b" " * 20_000


@pytest.fixture
async def server() -> AsyncIterator[LineServer]:
    server = LineServer(Capacity(2))
    yield server
    await server.close()


@pytest.mark.requirement("CORE-1-11")
async def test_answers_keep_their_order_around_one_that_waits(server: LineServer) -> None:
    reader, writer = await call(server)
    writer.write(b"a\nwait\nb\nwait\nlast\nnever\n")
    assert await reader.readline() == b"a\n"
    server.gate.set()
    assert await reader.read() == b"waited\nb\nwaited\nlast\n"
    assert b"never" not in [line for line, _ in server.seen]
    writer.close()


async def test_a_connection_with_much_to_answer_gives_way_to_others(server: LineServer) -> None:
    reader, writer = await call(server)
    other_reader, other_writer = await call(server)
    for each in (writer, other_writer):
        each.write(b"warm\n")
    for each in (reader, other_reader):
        await each.readline()
    writer.write(b"a\n" * 10 * BATCH_ANSWERS)
    other_writer.write(b"b\n")
    await reader.readexactly(2 * 10 * BATCH_ANSWERS)
    await other_reader.readline()
    assert [line for line, _ in server.seen].index(b"b") < 5 * BATCH_ANSWERS
    writer.close()
    other_writer.close()


@pytest.mark.parametrize("pipelined", [False, True])
async def test_agent_with_many_large_answers_lets_another_agent_have_every_second_turn(pipelined: bool) -> None:
    server, size = LineServer(Capacity(10)), LARGE + 1
    request = b"large %d\n" % size
    busy = [await call(server) for _ in range(6)]
    calm = await call(server)
    for index, (reader, writer) in enumerate((*busy, calm)):
        writer.write(b"I am %b\n" % (b"calm" if index == len(busy) else b"busy") + request)
        await reader.readline()
        await reader.readexactly(size)
    server.seen.clear()
    each = 3 if pipelined else 1
    for _, writer in busy:
        writer.write(request * each)
    calm[1].write(request)
    await asyncio.gather(*(reader.readexactly(each * size) for reader, _ in busy), calm[0].readexactly(size))
    order = [transport.get_extra_info("peername") for _, transport in server.seen]  # type: ignore[attr-defined]
    position = order.index(calm[1].get_extra_info("sockname"))
    for _, writer in (*busy, calm):
        writer.close()
    await server.close()
    assert position <= 2


async def test_a_failure_ends_one_connection_behind_the_answers_before_it(server: LineServer, caplog: Any) -> None:
    reader, writer = await call(server)
    _, other = await call(server)
    writer.write(b"a\nfail\nb\n")
    assert await reader.read() == b"a\n"
    assert "ZeroDivisionError" in caplog.text
    assert server.connections == 1
    writer.close()
    other.close()


async def test_a_fault_is_answered_after_the_earlier_requests(server: LineServer) -> None:
    reader, writer = await call(server)
    writer.write(b"wait\n?\nnever\n")
    await asyncio.sleep(0.05)
    server.gate.set()
    assert await reader.read() == b"waited\nquestion\n"
    writer.close()


@pytest.mark.parametrize("lines", [b"cancel and wait\n", b"warm\ngive up\n", b"give up\n"])
@pytest.mark.parametrize("warm", [True, False])
async def test_a_cancelled_request_ends_its_connection(server: LineServer, lines: bytes, warm: bool) -> None:
    if warm:  # a task is parked
        reader, writer = await call(server)
        writer.write(b"last\n")
        await reader.read()
        writer.close()
    reader, writer = await call(server)
    writer.write(lines)
    async with asyncio.timeout(5):
        assert b"waited" not in await reader.read()
        while server.connections:
            await asyncio.sleep(0.01)
    writer.close()


async def test_a_leftover_cancellation_does_not_affect_another_connection(server: LineServer) -> None:
    first, second = await call(server), await call(server)
    first[1].write(b"warm\n")
    await first[0].readline()
    # Both are read in one turn of the loop.
    first[1].write(b"cancel\n")
    second[1].write(b"wait\n")
    assert await first[0].readline() == b"cancel\n"
    await asyncio.sleep(0.05)
    server.gate.set()
    async with asyncio.timeout(5):
        assert await second[0].readline() == b"waited\n"
    first[1].close()
    second[1].close()


async def test_a_peer_that_does_not_read_many_small_answers_is_dropped() -> None:
    server = LineServer(timeouts=Timeouts(write=0.2))
    _, writer = await call(server)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((b"x" * 900 + b"\n") * 40_000)
    async with asyncio.timeout(15):
        while not server.connections:
            await asyncio.sleep(0.01)
        while server.connections:
            await asyncio.sleep(0.05)
    writer.transport.abort()
    await server.close()


async def test_a_peer_that_reads_its_last_answer_slowly_gets_all_of_it() -> None:
    server = LineServer(timeouts=Timeouts(write=0.5))
    reader, writer = await call(server)
    most = 24_000_000
    writer.write(b"last %d\n" % most)
    size = 0
    while chunk := await reader.read(most):
        size += len(chunk)
        await asyncio.sleep(0.01)
    assert size == most
    writer.close()
    await server.close()


async def flow(server: LineServer, held: int, *, answers: bool = False) -> None:
    """Wait until the server holds so many bytes."""
    async with asyncio.timeout(10):
        while (server.capacity.answers if answers else server.capacity.requests).held != held:
            await asyncio.sleep(0.01)


async def test_unfinished_requests_of_all_connections_share_one_bound() -> None:
    server = LineServer(Capacity(10, buffered=100 * KIB))
    stalled, active = await call(server), await call(server)
    stalled[1].write(b"x" * 60 * KIB)
    await flow(server, 60 * KIB)
    active[1].write(b"y" * 60 * KIB)
    assert await stalled[0].read() == b"too-many-bytes\n"
    await flow(server, 60 * KIB)
    small = await call(server)
    small[1].write(b"small\n")
    assert await small[0].readline() == b"small\n"
    active[1].write(b"\n")
    assert await active[0].readline() == b"y" * 60 * KIB + b"\n"
    assert server.capacity.requests.held == 0
    for _, writer in (stalled, active, small):
        writer.close()
    await server.close()


async def test_a_request_that_waits_keeps_its_bytes_and_the_requests_behind_it_lose_theirs() -> None:
    server = LineServer(Capacity(10, buffered=100 * KIB))
    waiting, other = await call(server), await call(server)
    waiting[1].write(b"wait\n")
    while not server.seen:
        await asyncio.sleep(0.01)
    waiting[1].write(b"x" * 50 * KIB + b"\n")
    await flow(server, 50 * KIB)
    other[1].write(b"y" * 90 * KIB)
    await flow(server, 90 * KIB)
    server.gate.set()
    assert await waiting[0].read() == b"waited\n"
    for _, writer in (waiting, other):
        writer.close()
    await flow(server, 0)
    await server.close()


async def test_answers_that_peers_do_not_read_share_one_bound() -> None:
    size = 16_000_000
    server = LineServer(Capacity(10, buffered=size // 4))
    callers = [await call(server) for _ in range(3)]
    for reader, writer in callers:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"last %d\n" % size)
    async with asyncio.timeout(10):
        while server.connections > 1:
            await asyncio.sleep(0.01)
    assert server.capacity.answers.held <= size
    for _, writer in callers:
        writer.transport.abort()
    await flow(server, 0, answers=True)
    await server.close()


FACES = [
    (Lines, b"hello" + SPACE + b"\n"),
    (AgtpReader, b"AGTP/1.0 QUERY /a\r\nContent-Length: 20000\r\n\r\n" + SPACE),
    (lambda: HttpReader(Limits()), b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + SPACE),
]


@pytest.fixture(params=FACES, ids=["lines", "agtp", "http"])
def face(request: pytest.FixtureRequest) -> tuple[RequestParser[Any], bytes]:
    kind, data = request.param
    return kind(), data


def test_only_requests_behind_the_one_that_was_taken_are_held(face: tuple[RequestParser[Any], bytes]) -> None:
    reader, data = face
    for _ in range(2):
        reader.receive_data(data)
        assert not isinstance(reader.next_event(), Pause)
        assert reader.next_event() is NEED_DATA
        assert (reader.buffered, reader.held) == (0, 0)
    reader.receive_data(data * 3)
    reader.next_event()
    assert reader.held >= 2 * len(SPACE)


def test_an_unfinished_request_is_held_until_it_is_discarded(face: tuple[RequestParser[Any], bytes]) -> None:
    reader, data = face
    for piece in (data[:5000], data[5000:-1]):
        reader.receive_data(piece)
        assert reader.next_event() is NEED_DATA
    assert reader.buffered == len(data) - 1
    assert len(SPACE) - 1 <= reader.held <= len(data)
    reader.discard()
    assert reader.held == 0
