"""Streams on the wire: their forms, readers that are slow or leave, and servers that stop."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import pytest
from a2a import types as a2a
from a2a.helpers.proto_helpers import get_data_parts
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.faces.a2a import agent
from tests.faces.mcp.tools import Rooms, opened
from tests.process import bespeak
from tests.streams import SIZE, Served, Streams, serving

from bespeak import connect, connect_sync
from bespeak.agent.client.errors import ServiceError, UnreachableError
from bespeak.agent.client.http_transport import read_event, split_lines
from bespeak.agent.discovery.fetcher import BodyError
from bespeak.contract.limits import StreamLimits
from bespeak.errors import RemoteProtocolError
from bespeak.faces.http.translation import to_part
from bespeak.faces.limits import Timeouts
from bespeak.protocol.exchange.headers import CONTINUATION_TOKEN, prefers, stream_type
from bespeak.protocol.exchange.messages import Batch
from bespeak.protocol.wire.connection import ResponseReader
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.bindings import stream as module

pytestmark = pytest.mark.anyio
HURRIED = Timeouts(write=0.2, linger=0.2, drain=5.0)
NDJSON, SSE = "application/x-ndjson", "text/event-stream"
HELLO = {
    "agtp": b"AGTP/1.0 QUERY %b\r\nPrefer: stream\r\n\r\n",
    "http": b"GET %b HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n",
}
TICKS = {"agtp": b"/ticks", "http": b"/ticks:query"}
PAUSED = {"agtp": b"/ticks?pause=true", "http": b"/ticks:query?pause=true"}


async def dial(served: Served, face: str, path: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for a stream over a connection of one's own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.ports[face], limit=1024)
    writer.write(HELLO[face] % path)
    return reader, writer


@rows(
    "header, wanted",
    ("application/x-ndjson", NDJSON),
    ("text/event-stream", SSE),
    ("application/json, application/x-ndjson;q=0.5", None),
    ("application/json, text/event-stream", None),
    ("application/x-ndjson;q=0.9, text/event-stream;q=0.8, */*;q=0.1", NDJSON),
    ("*/*", None),
    ("application/x-ndjson;q=0", None),
    ("x" * 2000 + "json", None),
)
def test_accept_asks_for_a_stream_only_if_it_names_one_before_json(header: str, wanted: str | None) -> None:
    assert stream_type({"accept": header}) == wanted


@rows(
    "header, wanted",
    ("stream", True),
    ("wait=10, Stream", True),
    ("stream; x=1", True),
    ("streams", False),
    ("", False),
)
def test_prefer_asks_for_a_stream(header: str, wanted: bool) -> None:
    assert prefers({"prefer": header}, "stream") is wanted


@rows("cors", (), ("https://pages.example",))
async def test_http_sends_lines_or_events_with_exactly_one_end(cors: tuple[str, ...]) -> None:
    async with serving(cors=cors) as served, httpx.AsyncClient(base_url=served.uri("http"), trust_env=False) as web:
        lines = await web.post("/rooms:query", json={"count": 2}, headers={"Accept": NDJSON})
        events = await web.get("/rooms:query", params={"fail_after": 1}, headers={"Accept": SSE})
        early = await web.get("/rooms:query", params={"fail_after": 0}, headers={"Accept": NDJSON})
        wrong = await web.get("/rooms:query", params={"count": "x"}, headers={"Accept": NDJSON})
        plain = await web.get("/rooms:query", params={"count": 1})
        head = await web.head("/rooms:query", headers={"Accept": NDJSON})
        other = await web.get("/openapi.json", headers={"Accept": NDJSON})
    assert lines.headers["content-type"] == NDJSON
    assert lines.headers["transfer-encoding"] == "chunked"
    assert lines.headers["agtp-status"] == "200"
    assert [json.loads(line) for line in lines.text.splitlines()] == [
        {"item": {"room_id": "0", "beds": 1}},
        {"item": {"room_id": "1", "beds": 1}},
        {"end": {"items": 2}},
    ]
    assert events.headers["content-type"] == SSE
    first, second, rest = events.text.split("\n\n")
    assert (first, rest) == ('event: item\ndata: {"room_id":"0","beds":1}', "")
    name, _, data = second.partition("\ndata: ")
    assert (name, json.loads(data)["code"], json.loads(data)["agtp_status"]) == ("event: error", "sold_out", 422)
    assert (early.status_code, early.json()["code"]) == (422, "sold_out")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "input-validation-failed")
    assert plain.json() == {"items": [{"room_id": "0", "beds": 1}]}
    assert (head.status_code, head.content, other.status_code) == (200, b"", 200)


async def test_http_1_0_gets_a_stream_that_ends_with_its_connection() -> None:
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.ports["http"])
        writer.write(b"GET /rooms:query HTTP/1.0\r\nAccept: application/x-ndjson\r\n\r\n")
        async with asyncio.timeout(20):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert b"transfer-encoding" not in head
    assert body.endswith(b'{"end":{"items":3}}\n')


async def test_agtp_sends_messages_that_are_continued_but_the_last_and_pipelined_requests_wait() -> None:
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.ports["agtp"])
        writer.write(HELLO["agtp"] % b"/rooms?waits=true&fail_after=2" + HELLO["agtp"] % b"/rooms?count=1")
        messages: list[ResponseMessage] = []
        wire = ResponseReader()
        async with asyncio.timeout(20):
            while len(messages) < 4:
                wire.receive_data(await reader.read(65536))
                while isinstance(message := wire.next_event(), ResponseMessage):
                    messages.append(message)
        writer.close()
    assert [("continuation-token" in each.headers, each.status) for each in messages] == [
        (True, 200),
        (True, 200),
        (False, 422),
        (False, 200),
    ]
    assert all("server-id" in each.headers for each in messages)
    assert ["supported-methods" in each.headers for each in messages[:2]] == [True, False]
    assert messages[3].body == b'{"items":[{"room_id":"0","beds":1}]}'


@rows("face", "agtp", "http")
async def test_a_reader_that_does_not_read_stops_the_generator_and_is_cut_off(face: str) -> None:
    async with serving(timeouts=HURRIED) as served:
        _, writer = await dial(served, face, TICKS[face])
        await served.closed()
        yielded = served.streams.yielded
        writer.transport.abort()
    assert yielded * SIZE < 30_000_000  # what the kernel takes on loopback, and no more


@rows("face", "agtp", "http")
@rows("path", TICKS, PAUSED, ids=("busy", "paused"))
async def test_a_reader_that_leaves_closes_the_generator(face: str, path: dict[str, bytes]) -> None:
    async with serving(audited=True) as served:
        reader, writer = await dial(served, face, path[face])
        async with asyncio.timeout(20):
            await reader.readexactly(100)
        writer.transport.abort()
        await served.closed()
    assert not module._running


@rows("face", "agtp", "http")
async def test_a_reader_that_leaves_before_the_first_item_closes_the_generator(face: str) -> None:
    async with serving() as served:
        _, writer = await dial(served, face, b"/silence" if face == "agtp" else b"/silence:query")
        await asyncio.wait_for(served.streams.begun.wait(), 20)
        writer.transport.abort()
        await served.closed()


@rows("face", "agtp", "http")
async def test_a_server_that_stops_ends_streams_with_an_error(face: str) -> None:
    async with serving(timeouts=HURRIED) as served, connect(served.uri(face)) as service:
        items = service.stream("QUERY", "/ticks", pause=True)
        assert len(await anext(items)) == SIZE
        stopping = asyncio.create_task((served.agtp if face == "agtp" else served.http).drain())
        with pytest.raises(ServiceError) as error:
            await anext(items)
        assert (error.value.status, error.value.code) == (503, "stream-interrupted")
        await asyncio.wait_for(stopping, 20)
        await served.closed()


@rows("face", "agtp", "http")
async def test_a_handler_that_ignores_its_cancellation_holds_nothing_up(
    face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.05)
    async with serving(limits=StreamLimits(seconds=0.05)) as served, connect(served.uri(face)) as service:
        with pytest.raises(ServiceError) as error:
            _ = [item async for item in service.stream("QUERY", "/deaf")]
        assert error.value.code == "stream-interrupted"
        assert await service.call("QUERY", "/rooms", count=0) == {"items": []}
        server = served.agtp if face == "agtp" else served.http
        await asyncio.wait_for(server.drain(), 20)
        assert server.connections == 0
        served.streams.release.set()
    assert not module._running


@rows("face", "agtp", "http")
async def test_a_stream_that_is_cut_off_is_not_taken_for_a_whole_one(face: str) -> None:
    async with serving() as served, connect(served.uri(face)) as service:
        items = service.stream("QUERY", "/ticks", pause=True)
        await anext(items)
        server = served.agtp if face == "agtp" else served.http
        assert server._shared is not None
        for connection in tuple(server._shared.connections):
            connection.transport.abort()
        with pytest.raises(UnreachableError):
            await anext(items)


async def test_lines_of_a_stream_are_split_wherever_chunks_end_and_bounded() -> None:
    async def chunks(*parts: bytes) -> Any:
        for part in parts:
            yield part

    assert [line async for line in split_lines(chunks(b'{"a"', b":1}\n\n{", b"}\n", b"rest"), 10)] == [
        b'{"a":1}',
        b"{}",
    ]
    with pytest.raises(BodyError):
        _ = [line async for line in split_lines(chunks(b"x" * 8, b"y" * 8), 10)]
    with pytest.raises(BodyError):
        _ = [line async for line in split_lines(chunks(b"x" * 12 + b"\n"), 10)]


@given(st.lists(st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text()))), st.integers(1, 9))
def test_a_stream_is_read_the_same_wherever_its_chunks_end(items: list[Any], size: int) -> None:
    batch = Batch(tuple(map(msgspec.json.encode, items)), ended=True)
    data = to_part(batch, NDJSON, 0)

    async def read() -> list[Any]:
        async def chunks() -> Any:
            for start in range(0, len(data), size):
                yield data[start : start + size]

        lines = [line async for line in split_lines(chunks(), 1_000_000)]
        messages = [read_event(ResponseMessage(200, "OK", {}, line)) for line in lines]
        assert [CONTINUATION_TOKEN.lower() in each.headers for each in messages] == [True] * len(items) + [False]
        return [item for each in messages for item in msgspec.json.decode(each.body)["items"]]

    assert asyncio.run(read()) == items


@given(st.one_of(st.binary(), st.from_regex(rb'\{"(item|end|error)":.*\}', fullmatch=True)))
def test_a_line_that_is_not_an_event_is_a_fault_of_the_peer(line: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert isinstance(read_event(ResponseMessage(200, "OK", {}, line)), ResponseMessage)


async def test_every_document_says_that_an_endpoint_streams() -> None:
    async with serving() as served, httpx.AsyncClient(base_url=served.uri("http"), trust_env=False) as web:
        openapi = (await web.get("/openapi.json")).json()["paths"]["/rooms:query"]["post"]
        agis = (await web.get("/", headers={"Accept": "application/agis+json"})).json()
        async with connect(served.uri("agtp")) as service:
            manifest = await service.discover()
    assert openapi["x-agtp-streams"] is True
    assert set(openapi["responses"]["200"]["content"]) == {"application/json", NDJSON, SSE}
    assert all(endpoint["streams"] for endpoint in agis["endpoints"])
    assert all(endpoint.streams for endpoint in manifest.own_endpoints)


async def test_the_blocking_client_iterates_and_leaves() -> None:
    async with serving() as served:

        def use() -> tuple[list[Any], int]:
            with connect_sync(served.uri("agtp")) as service:
                found = list(service.stream("QUERY", "/rooms", count=2))
                for tick in service.stream("QUERY", "/ticks", pause=True):
                    return found, len(tick)
            raise AssertionError

        assert await asyncio.to_thread(use) == ([{"room_id": "0", "beds": 1}, {"room_id": "1", "beds": 1}], SIZE)
        await served.closed()


@pytest.mark.process
async def test_bespeak_call_prints_a_line_for_each_item_and_then_the_refusal() -> None:
    async with serving() as served:
        done = await asyncio.to_thread(
            bespeak, "call", served.uri("agtp"), "QUERY", "/rooms", "fail_after=2", "--stream"
        )
    assert done.returncode == 1
    assert [json.loads(line)["room_id"] for line in done.stdout.splitlines()] == ["0", "1"]
    assert "sold_out" in done.stderr


class Tools(Streams):
    """The service behind MCP."""

    serving = Rooms.serving
    on_http = Rooms.on_http


async def test_mcp_clients_hear_of_each_item_and_get_them_all(way: str, era: str) -> None:
    heard: list[tuple[float, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, message))

    async with opened(Tools(), way, era) as client:  # type: ignore[arg-type]
        result = await client.call_tool("query_rooms", {"count": 3, "waits": True}, progress_callback=listen)
        quiet = await client.call_tool("query_rooms", {"count": 1})
    items = [{"room_id": str(number), "beds": 1} for number in range(3)]
    assert result.structured_content == {"items": items}
    assert [(done, json.loads(message or "")) for done, message in heard] == [
        (number + 1, item) for number, item in enumerate(items)
    ]
    assert quiet.structured_content == {"items": items[:1]}


@pytest.mark.parametrize("version", agent.VERSIONS)
async def test_a2a_streams_append_items_to_the_output_which_is_whole_in_the_end(version: str) -> None:
    streams = Streams()
    async with agent.on_http(streams) as (url, _), agent.connected(url, version, streaming=True) as client:  # type: ignore[arg-type]
        sent = a2a.SendMessageRequest(message=agent.calling("query_rooms", count=3, waits=True))
        chunks = [each.artifact_update async for each in client.send_message(sent) if each.HasField("artifact_update")]
        failing = a2a.SendMessageRequest(message=agent.calling("query_odd", kind="raises"))
        events = [each async for each in client.send_message(failing)]
    items = [{"room_id": str(number), "beds": 1} for number in range(3)]
    *parts, last = chunks
    assert [item for each in parts for item in get_data_parts(each.artifact.parts)] == items
    assert [each.append for each in parts] == [number > 0 for number in range(len(parts))]
    assert (last.append, last.last_chunk) == (False, True)
    assert get_data_parts(last.artifact.parts) == [{"items": items}]
    assert agent.state(events[-1].status_update) == "failed"
