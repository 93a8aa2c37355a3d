"""MCP on pipes: lines that are not messages, clients that go away, and the end of running calls."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, cast

import pytest
from tests.faces.mcp.tools import Rooms, modern

pytestmark = pytest.mark.anyio


class Peer:
    """The client's ends of two pipes."""

    def __init__(self, writing: BinaryIO, reading: BinaryIO, serving: asyncio.Task[None], stop: asyncio.Event) -> None:
        self.writing = writing
        self.reading = reading
        self.serving = serving
        self.stop = stop

    def send(self, *lines: bytes) -> None:
        self.writing.write(b"".join(line + b"\n" for line in lines))
        self.writing.flush()

    async def read(self) -> Any:
        return json.loads(await asyncio.wait_for(asyncio.to_thread(self.reading.readline), 20))


@asynccontextmanager
async def connected(rooms: Rooms) -> AsyncIterator[Peer]:
    from bespeak.app.server.mcp_stdio import serve_stdio

    (server_reads, client_writes), (client_reads, server_writes) = os.pipe(), os.pipe()
    async with rooms.serving() as (tools, _):
        stop = asyncio.Event()
        with (
            os.fdopen(server_reads, "rb") as theirs,
            os.fdopen(client_reads, "rb") as reading,
            os.fdopen(server_writes, "wb", buffering=0) as ours,
            os.fdopen(client_writes, "wb") as writing,
        ):
            serving = asyncio.create_task(serve_stdio(tools.server, (theirs, cast("BinaryIO", ours)), stop))
            try:
                yield Peer(writing, reading, serving, stop)
            finally:
                writing.close()
                await asyncio.wait_for(serving, 20)


def request(method: str, number: int = 7, **params: Any) -> bytes:
    return json.dumps({**modern(method, **params)[1], "id": number}).encode()


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{not json", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'{"params":' * 5000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        (b"null", -32600, None),
        (b'{"jsonrpc": "2.0"}', -32600, None),
        (b'{"jsonrpc": "1.0", "id": 3, "method": "ping"}', -32600, 3),
        (b'{"id": "x", "method": "ping"}', -32600, "x"),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"a": "\\ud800"}}', -32700, None),
    ],
)
async def test_a_line_that_is_not_a_message_is_answered_and_the_next_one_served(
    line: bytes, code: int, number: int | str | None
) -> None:
    async with connected(Rooms()) as peer:
        peer.send(b"", line, request("tools/list"))
        error, listed = await peer.read(), await peer.read()
    assert (error["id"], error["error"]["code"]) == (number, code)
    assert listed["id"] == 7


async def test_a_line_without_end_is_refused_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.app.server.mcp_stdio.LONGEST", 1000)
    async with connected(Rooms()) as peer:
        peer.send(b"x" * 5000, request("tools/list"))
        error, listed = await peer.read(), await peer.read()
    assert error["error"]["message"] == "The line is longer than 1000 bytes"
    assert listed["id"] == 7


async def test_the_end_of_input_cancels_running_calls() -> None:
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.writing.close()
        await asyncio.wait_for(peer.serving, 20)
    assert rooms.cancelled.is_set()


async def test_a_stop_cancels_running_calls_although_the_client_keeps_its_end_open() -> None:
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.stop.set()
        await asyncio.wait_for(peer.serving, 20)
        assert rooms.cancelled.is_set()


async def test_a_client_that_reads_no_more_ends_the_server() -> None:
    async with connected(Rooms()) as peer:
        peer.reading.close()
        peer.send(request("tools/list"))
        await asyncio.wait_for(peer.serving, 20)


async def test_a_notification_cancels_a_call() -> None:
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.send(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}')
        await asyncio.wait_for(rooms.cancelled.wait(), 20)
        peer.send(request("tools/list", 8))
        assert (await peer.read())["id"] == 8
