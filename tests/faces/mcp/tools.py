"""Endpoints and a service for tests of MCP, and the SDK's client for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tests.service import AGENT

from bespeak import App, Context, Price, Refusal
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.local import connect_local
from bespeak.app.server.mcp_stdio import ClientBackend
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.settings import HttpAssembly
from bespeak.app.server.target import Target, load_app
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.limits import RateLimits
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.limits import Timeouts
from bespeak.runtime.server import Server
from bespeak.state.store.settings import MEMORY, CaseSettings, open_store
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    import mcp_types as types
    from mcp import Client

    from bespeak.faces.mcp.http import McpApplication
    from bespeak.faces.mcp.server import ToolServer

MODERN, LEGACY = "2026-07-28", "legacy"
ERAS = (MODERN, LEGACY)
SCOPES = ("rooms:read", "rooms:write")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
WATCHES: Any = {"impact": "informational", "scopes": ["rooms:read"]}
READS: Any = {**WATCHES, "idempotent": True}
CHANGES: Any = {"impact": "reversible", "scopes": ["rooms:write"]}
Answer = Callable[[str], Mapping[str, Any]]
"""The user: a question to an action and, if it is accept, the content of the form."""


def endpoint(method: str, path: str, *, tool: str | None = None, **changes: Any) -> Endpoint:
    """Make an endpoint; `changes` are fields of it or of its semantic block."""
    semantic: dict[str, Any] = {
        "confidence": 0.9,
        "is_idempotent": True,
        "capability": "retrieval",
        "intent": "Find rooms.",
        "actor": "agent",
        "outcome": "The rooms are returned.",
        "impact": "informational",
        "mcp_tool_name": tool,
    }
    semantic |= {name: changes.pop(name) for name in Semantic.__dataclass_fields__ if name in changes}
    fields: dict[str, Any] = {
        "description": "Finds rooms.",
        "handler": OpaqueHandler(type="registered_function"),
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
    }
    return Endpoint(method=method, path=path, semantic=Semantic(**semantic), **(fields | changes))


@dataclass
class Record:
    """An element of a long list."""

    number: int
    note: str
    remark: str | None = None


@dataclass
class Records:
    """A long list."""

    records: list[Record]
    total: int


@dataclass
class Book:
    """A long text."""

    text: str
    title: str


class Lamp:
    """Sell a lamp."""

    def price(self, value: str = "30.00") -> Price:
        return Price(value, "EUR")

    def fulfil(self, value: str = "30.00") -> dict[str, str]:
        return {"lamp": "L-1"}


class Rooms:
    """A service with an endpoint of each kind, and what was done by it."""

    def __init__(self, **options: Any) -> None:
        self.booked: list[str] = []
        self.waiting, self.cancelled = asyncio.Event(), asyncio.Event()
        self.app = app = App(
            "Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example", **options
        )

        if "PURCHASE" in options.get("methods", ()):
            app.sale("lamp")(Lamp)

        @app.endpoint("QUERY", "/rooms", **READS, outcome="The rooms are returned.")
        def rooms(beds: int = 1) -> dict[str, list[str]]:
            """Find rooms with enough beds."""
            return {"rooms": ["12", "14"][: 3 - beds]}

        @app.endpoint("LIST", "/floors", **READS, outcome="The floors are returned.")
        def floors() -> list[int]:
            """List the floors."""
            return [1, 2]

        @app.endpoint(
            "BOOK",
            "/rooms/{room_id}",
            impact="irreversible",
            scopes=["rooms:write"],
            errors={"room_unavailable": "The room is taken."},
            outcome="A reservation exists and its id is returned.",
        )
        def book(room_id: str) -> dict[str, str]:
            """Reserve a room."""
            if room_id in self.booked:
                raise Refusal("room_unavailable", "Taken.", next_free="14")
            self.booked.append(room_id)
            return {"reservation_id": f"r{len(self.booked)}"}

        @app.endpoint("RESET", "/rooms", **CHANGES, outcome="The rooms are as new.")
        def broken() -> None:
            """Reset the rooms."""
            raise RuntimeError("secret of the handler")

        @app.endpoint("WATCH", "/rooms", **WATCHES, outcome="The rooms have changed.")
        async def wait() -> None:
            """Watch the rooms."""
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()

        @app.endpoint("INSPECT", "/ledger", impact="informational", internal=True, outcome="The ledger is returned.")
        def internal() -> None:
            """Inspect the ledger."""

    @asynccontextmanager
    async def serving(
        self: Rooms | Archive | Survey,
        *,
        scopes: tuple[str, ...] = SCOPES,
        command: str | None = "bespeak cases accept {case} rooms",
        settings: McpSettings | None = None,
    ) -> AsyncIterator[tuple[ToolServer, Store]]:
        """Serve the tools inside this process; `scopes` is the authority of the caller."""
        from bespeak.faces.asking import Asking
        from bespeak.faces.mcp.server import ToolServer

        target: Target = load_app(self.app, Path())
        store = open_store(MEMORY, role="sole")
        servers: list[Server] = []
        opening = connect_local(target, agent_id=AGENT, scopes=scopes, store=store, opened=servers.append)
        async with opening as client:
            manifest = await client.discover()
            backend = ClientBackend(client, manifest, caller=AGENT, service=target.service, server=servers[0])
            yield ToolServer(backend, Asking(store, CaseSettings(), command), settings), store

    @asynccontextmanager
    async def on_http(
        self: Rooms | Archive | Survey,
        document: ServerDocument | None = None,
        *,
        stateless: bool = False,
        rates: RateLimits | None = None,
    ) -> AsyncIterator[tuple[str, Keeper]]:
        """Serve the tools on a real port; yield the URL of MCP."""
        target = load_app(self.app, Path())
        if rates is not None:
            target = replace(target, service=replace(target.service, rate_limits=rates))
        async with on_http(target, document, stateless=stateless) as (url, keeper, _):
            yield url, keeper


class Archive:
    """A service with long outputs."""

    COUNT = 3_000

    def __init__(self) -> None:
        self.app = app = App("Archive", server_id="archive.example", operator="Tests", contact="ops@archive.example")

        @app.endpoint("LIST", "/records", **READS, outcome="The records are returned.")
        def records(limit: int = 3_000, offset: int = 0) -> Records:
            """List the records."""
            found = [Record(number, "dusty", "") for number in range(offset, min(offset + limit, self.COUNT))]
            return Records(found, self.COUNT)

        @app.endpoint("FETCH", "/novel", **READS, outcome="Its text is returned.")
        def novel() -> Book:
            """Fetch the novel."""
            return Book("A long story. " * 20_000, "The Book")

    serving = Rooms.serving
    on_http = Rooms.on_http


class Survey:
    """A service whose calls take long, and what became of them."""

    STEPS = 3

    def __init__(self) -> None:
        self.waiting, self.cancelled, self.left = asyncio.Event(), asyncio.Event(), threading.Event()
        self.returned = threading.Event()
        self.app = app = App("Survey", server_id="survey.example", operator="Tests", contact="ops@survey.example")

        @app.endpoint("ANALYZE", "/halls", **WATCHES, outcome="Their number is returned.")
        async def halls(context: Context) -> dict[str, int]:
            """Analyze the halls."""
            for number in range(1, self.STEPS + 1):
                context.progress(number, self.STEPS, f"hall {number}")
                await asyncio.sleep(0)
            return {"halls": self.STEPS}

        @app.endpoint("ANALYZE", "/cellars", **WATCHES, outcome="Their number is returned.")
        def cellars(context: Context) -> dict[str, int]:
            """Analyze the cellars."""
            for number in range(1, self.STEPS + 1):
                context.progress(number, self.STEPS)
            return {"cellars": self.STEPS}

        @app.endpoint("MODIFY", "/halls", **CHANGES, outcome="The halls are modified.")
        async def modify() -> None:
            """Modify the halls."""
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()

        @app.endpoint("MODIFY", "/cellars", **CHANGES, outcome="The cellars are modified.")
        def modify_in_thread(context: Context) -> dict[str, int]:
            """Modify the cellars."""
            loop.call_soon_threadsafe(self.waiting.set)
            self.left.wait(20)
            context.progress(1, 1)
            self.returned.set()
            return {}

        loop = asyncio.get_running_loop()

    serving = Rooms.serving
    on_http = Rooms.on_http


@asynccontextmanager
async def on_http(
    target: Target, document: ServerDocument | None = None, *, stateless: bool = False
) -> AsyncIterator[tuple[str, Keeper, McpApplication]]:
    """Serve the tools of a target on a real port; yield the URL of MCP, and what serves it."""
    from bespeak.app.server.http_face import make_face, make_mcp, mount_mcp
    from bespeak.faces.http.server import HttpServer

    document = document or ServerDocument()
    keeper = Keeper(assemble_target(target, "2026-11-16T00:00:00Z"), open_store(MEMORY, role="sole"), document)
    await keeper.start()
    assembly = HttpAssembly(keeper.dispatcher, document.http, document.auth, loopback=True, stateless=stateless)
    mcp = make_mcp(assembly, document.mcp)
    await mcp.start()
    face = make_face(keeper.dispatcher, document.http)
    server = HttpServer(face, streamed=mount_mcp(mcp, document.http), timeouts=Timeouts(drain=5.0))
    [(host, port)] = await server.start("127.0.0.1", 0)
    try:
        yield f"http://{host}:{port}/mcp", keeper, mcp
    finally:
        await server.drain()
        await mcp.stop()
        await keeper.stop()


@asynccontextmanager
async def connected_to(url: str, era: str, answer: Answer | None = None, **headers: str) -> AsyncIterator[Client]:
    """Connect the SDK's client to a URL, with these headers in every request."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=30, trust_env=False) as http,
        Client(
            streamable_http_client(url, http_client=http), mode=era, elicitation_callback=answering(answer)
        ) as client,
    ):
        yield client


@asynccontextmanager
async def opened(
    service: Rooms | Archive | Survey, way: str, era: str, settings: McpSettings | None = None
) -> AsyncIterator[Client]:
    """Connect a client to the server of the command, or to that of the HTTP face, and list the tools."""
    if way == "stdio":
        async with service.serving(settings=settings) as (server, _), connected(server, era) as client:
            await client.list_tools()
            yield client
    else:
        document = ServerDocument(mcp=settings or McpSettings())
        authority = {"agent_id": AGENT, "authority_scope": ", ".join(SCOPES)}
        async with service.on_http(document) as (url, _), connected_to(url, era, **authority) as client:
            await client.list_tools()
            yield client


def modern(method: str, **params: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Write a request of the modern era by hand: its headers and its body."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    return headers, body


@asynccontextmanager
async def connected(server: ToolServer, era: str, answer: Answer | None = None) -> AsyncIterator[Client]:
    """Connect the SDK's client, without a network; with `answer` it can ask its user."""
    from mcp import Client

    async with Client(server.server, mode=era, elicitation_callback=answering(answer)) as client:
        yield client


def answering(answer: Answer | None) -> Any:
    """Make the callback of the SDK's client for a user."""
    if answer is None:
        return None

    async def ask(_: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        import mcp_types as types

        return types.ElicitResult.model_validate(answer(params.message))

    return ask


def agree(_: str) -> Mapping[str, Any]:
    """Answer for a user who agrees to everything."""
    return {"action": "accept", "content": {"confirm": True}}


class Agreeing(list[str]):
    """A user who agrees to everything, and what was asked."""

    def __call__(self, question: str) -> Mapping[str, Any]:
        self.append(question)
        return agree(question)


def error_in(result: types.CallToolResult) -> dict[str, Any]:
    """Return the error of a refused call."""
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    error: dict[str, Any] = msgspec.json.decode(block.text)["error"]  # type: ignore[union-attr] # it is text
    return error
