"""MCP over standard input and output, and the service behind it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import msgspec
import pytest
from tests.cases import rows
from tests.faces.mcp.tools import SCOPES, Rooms, endpoint, modern
from tests.service import AGENT

from bespeak import Policies
from bespeak.agent.client.errors import Reply, UnreachableError
from bespeak.app.server.local import connect_local
from bespeak.app.server.mcp_stdio import ClientBackend
from bespeak.app.server.target import load_app
from bespeak.contract.mcp_tool import make_tools
from bespeak.contract.service import ServerIdentity
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Outcome

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


@rows(
    "line, code, number",
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
)
async def test_invalid_line_is_answered_and_the_next_served(line: bytes, code: int, number: int | str | None) -> None:
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


async def test_the_end_of_input_or_a_stop_cancels_running_calls() -> None:
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.writing.close()
        await asyncio.wait_for(peer.serving, 20)
    assert rooms.cancelled.is_set()
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.stop.set()
        await asyncio.wait_for(peer.serving, 20)
        assert rooms.cancelled.is_set()


async def test_a_notification_cancels_a_call_and_a_client_that_reads_no_more_ends_the_server() -> None:
    rooms = Rooms()
    async with connected(rooms) as peer:
        peer.send(request("tools/call", name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        peer.send(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}')
        await asyncio.wait_for(rooms.cancelled.wait(), 20)
        peer.send(request("tools/list", 8))
        assert (await peer.read())["id"] == 8
    async with connected(Rooms()) as peer:
        peer.reading.close()
        peer.send(request("tools/list"))
        await asyncio.wait_for(peer.serving, 20)


FIND = endpoint("FIND", "/rooms", required_scopes=("rooms:read",))
ROOT = endpoint("FIND", "/")


def manifest(version: str) -> ManifestDocument:
    server = ServerIdentity(server_id="rooms.example", operator="", contact="")
    return ManifestDocument(server=server, agtp_version=version, endpoints=(FIND, ROOT), raw={})


class Client:
    """A client whose reply is given, and the requests that it got."""

    discovered: Any = None

    def __init__(self, reply: Reply | Exception, version: str = "1.0") -> None:
        self._reply = reply
        self._manifest = manifest(version)
        self.named: list[tuple[str, str]] = []

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        return self._manifest

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Reply:
        self.named.append((method, path))
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


def backend(reply: Reply | Exception, **options: Any) -> ClientBackend:
    return ClientBackend(cast("Any", Client(reply)), manifest("1.0"), **options)


async def outcome(reply: Reply | Exception) -> Outcome:
    return await backend(reply).call(FIND, {}, {}, None)


def replied(status: int, body: bytes, **headers: str) -> Reply:
    return Reply(status, "", {name.replace("_", "-"): value for name, value in headers.items()}, body)


async def test_outputs_warnings_and_refusals_are_passed_on_without_the_query_of_the_address() -> None:
    found = await outcome(replied(200, b'{"a": 1}', agtp_endpoint_warning="deprecated"))
    assert found == Outcome(200, {"a": 1}, warning="deprecated")
    assert (await outcome(replied(200, b"hello", content_type="text/plain"))).output == "hello"
    body = msgspec.json.encode({"error": {"code": "busy", "message": "Busy.", "limit": 3}})
    found = await outcome(replied(429, body, retry_after="5"))
    assert (found.error, found.retry_after) == ({"code": "busy", "message": "Busy.", "limit": 3}, "5")
    found = await outcome(UnreachableError("GET https://x.example/a?api_key=secret: is the server running?"))
    assert found.error == {"code": "service-not-reached", "message": "GET https://x.example/a is the server running?"}


@rows("scopes, refused", (None, False), (Scopes(["rooms:*"]), False), (Scopes(), True), (Scopes(["a:b"]), True))
def test_a_call_whose_scopes_are_known_to_be_missing_is_refused(scopes: Scopes | None, refused: bool) -> None:
    found = backend(replied(200, b""), scopes=scopes).refuse(FIND, None)
    assert (found is not None) is refused
    assert found is None or found.error["missing_scopes"] == ["rooms:read"]


@pytest.mark.parametrize(("version", "paths"), [("1.0", ["/rooms"]), ("", ["/rooms", "/"])])
async def test_endpoints_that_every_agtp_server_has_are_left_out(version: str, paths: list[str]) -> None:
    client = Client(replied(200, b""), version)
    found = await ClientBackend(cast("Any", client), await client.discover()).endpoints()
    assert [each.path for each in found] == paths


async def test_capabilities_that_share_a_path_are_called_by_their_ids() -> None:
    first, second = (endpoint("POST", "/rpc", tool=name) for name in ("book_flight", "cancel_flight"))
    client = Client(replied(200, b"{}"))
    client.discovered = SimpleNamespace(kind="ai", capability=lambda name: name if name != "other" else None)
    serving = ClientBackend(cast("Any", client), await client.discover())
    for each in (first, second, endpoint("POST", "/rpc", tool="other")):
        await serving.call(each, {}, {}, None)
    assert client.named == [("book_flight", ""), ("cancel_flight", ""), ("POST", "/rpc")]
    assert list(make_tools([first, second])) == ["book_flight", "cancel_flight"]


async def test_the_manifest_or_the_service_says_which_calls_another_party_confirms() -> None:
    app = Rooms(policies=Policies(confirm_irreversible=True)).app
    async with connect_local(load_app(app, Path()), agent_id=AGENT, scopes=SCOPES) as client:
        serving = ClientBackend(client, await client.discover())
        confirmed = [str(each) for each in await serving.endpoints() if serving.is_confirmed(each)]
    assert confirmed == ["BOOK /rooms/{room_id}"]
    error = {"code": "confirmation-required", "message": "Wait.", "confirmation_id": "conf-1"}
    serving = backend(replied(262, msgspec.json.encode({"error": error})))
    assert not serving.is_confirmed(FIND)
    await serving.call(FIND, {}, {}, None)
    assert serving.is_confirmed(FIND)
    assert not serving.is_confirmed(ROOT)
