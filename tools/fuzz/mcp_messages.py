"""Invariant: whatever a client of MCP sends, it gets an answer that shows nothing of the inside, and confirms nothing.

Run `python tools/fuzz/mcp_messages.py --seconds 600`. Requests of both eras are damaged, as text and as JSON, and
sent to the application at /mcp and to the reader of standard input. It prints how many it tried, or the one that broke
the invariant.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from campaign import campaign

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faces.mcp.tools import Rooms, modern
from tests.service import AGENT

from bespeak.app.server.assembly import Keeper
from bespeak.app.server.http_face import make_mcp
from bespeak.app.server.mcp_stdio import parse_line
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.settings import HttpAssembly
from bespeak.app.server.target import load_app
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.store.settings import MEMORY, open_store

AUTHORITY = {"Agent-ID": AGENT, "Authority-Scope": "rooms:read, rooms:write"}
CONFIRM = {"confirm": {"action": "accept", "content": {"confirm": True}}}
ROOM = {"room_id": "12"}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "query_rooms", "arguments": {"beds": 2}}),
    ("tools/call", {"name": "reset_rooms", "arguments": {}}),
    (
        "tools/call",
        {"name": "book_rooms", "arguments": {"room_id": "12"}, "inputResponses": CONFIRM, "requestState": "x"},
    ),
    ("tools/call", {"name": "book_rooms", "arguments": {"room_id": "12", "confirm": True}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "bespeak://manifest"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "rooms", "arguments": {}}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    ("ping", {}),
    ("notifications/cancelled", {"requestId": 7}),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**70, "", "x", "\ud800", "\x00", "x" * 3000, [], {}, [[]], {"a": None}),
    *("2026-07-28", "2025-11-25", "tools/call", "book_rooms", CONFIRM),
)
PIECES = (b"{", b"}", b"[", b'"', b",", b":", b"\\", b"\x00", b"\xff", b"NaN", b"1e999", b"null", b"\n", b"[" * 2000)
INSIDE = ("Traceback", "pydantic", "secret of the handler", ".py", "RuntimeError")

_runner = asyncio.Runner()
_running = contextlib.AsyncExitStack()
_rooms = Rooms()
_started: list[Any] = []
_opened: dict[str, str] = {}


Exchange = Callable[[Mapping[str, str], bytes], Awaitable[tuple[int, dict[str, str], str]]]
"""Sends headers and a body; returns status, headers and body of the answer."""


@asynccontextmanager
async def on_asgi(rooms: Rooms) -> AsyncIterator[Exchange]:
    """Serve the tools without a port."""
    document = ServerDocument()
    assembled = assemble_target(load_app(rooms.app, Path()), "2026-11-16T00:00:00Z")
    keeper = Keeper(assembled, open_store(MEMORY, role="sole"), document)
    await keeper.start()
    mcp = make_mcp(HttpAssembly(keeper.dispatcher, document.http, document.auth), document.mcp)
    await mcp.start()

    async def exchange(headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, str], str]:
        waiting, answer = [body], []

        async def receive() -> Any:
            if waiting:
                return {"type": "http.request", "body": waiting.pop(), "more_body": False}
            await asyncio.Event().wait()
            return None

        async def send(message: Any) -> None:
            answer.append(message)

        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": pairs}
        await asyncio.wait_for(mcp(scope, receive, send), 30)
        found = {name.decode(): value.decode() for name, value in answer[0]["headers"]}
        return answer[0]["status"], found, b"".join(each.get("body", b"") for each in answer).decode()

    try:
        yield exchange
    finally:
        await mcp.stop()
        await keeper.stop()


def trial(source: random.Random, noted: list[object]) -> None:
    """Send one damaged request over HTTP, and its body as a line of standard input."""
    method, params = source.choice(CALLS)
    headers, body = modern(method, **copy.deepcopy(params))
    if method.startswith("notifications/"):
        del body["id"]
    if source.random() < 0.5:
        headers = {"Accept": headers["Accept"], "Content-Type": "application/json", **_session()}
        body["params"].pop("_meta")
    for _ in range(source.choice((0, 1, 1, 2, 3))):
        _damage(source, body)
    text = json.dumps(body).encode()
    for _ in range(source.choice((0, 0, 0, 1, 3))):
        at = source.randrange(len(text) + 1)
        text = text[:at] + source.choice(PIECES) + text[at + source.choice((0, 1, 9)) :]
    if source.random() < 0.3:
        headers.pop(source.choice(list(headers)))
    noted += [headers, text]
    status, _, answer = _exchange({**headers, **AUTHORITY}, text)
    assert 200 <= status < 500, f"{status} {answer!r}"
    assert not any(words in answer for words in INSIDE), answer
    assert _rooms.booked == [], "booked without a question"
    parse_line(text)


def _damage(source: random.Random, body: Any) -> None:
    nodes = [body]
    for node in nodes:  # grows while it is read
        nodes += [each for each in (node.values() if isinstance(node, dict) else node) if isinstance(each, dict | list)]
    node = source.choice(nodes)
    value = copy.deepcopy(source.choice(VALUES))
    if isinstance(node, list):
        node.append(value)
    elif not node or source.random() < 0.3:
        node[source.choice(("", "id", "name", "_meta", "x", "confirm"))] = value
    elif source.random() < 0.5:
        del node[source.choice(list(node))]
    else:
        node[source.choice(list(node))] = value


def _exchange(headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], str]:
    if not _started:
        _started.append(_runner.run(_running.enter_async_context(on_asgi(_rooms))))
    found: tuple[int, dict[str, str], str] = _runner.run(_started[0](headers, body))
    return found


def _session() -> dict[str, str]:
    """Return the header of a session of an earlier revision, which is opened once."""
    if not _opened:
        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", **AUTHORITY}
        (params,) = (given for method, given in CALLS if method == "initialize")
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        _, found, _ = _exchange(sent, json.dumps(opening).encode())
        _opened["Mcp-Session-Id"] = found["mcp-session-id"]
        _exchange({**sent, **_opened}, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    return dict(_opened)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with _runner:
        code = campaign(__doc__, trial)
        _runner.run(_running.aclose())
    sys.exit(code)
