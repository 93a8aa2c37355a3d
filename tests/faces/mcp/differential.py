"""Two equal services, of which one has the fast lane of MCP: what does either answer to a mutated request?"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from tests.faces.mcp.mutated_requests import PLAIN, SESSION, Case, Sent, mutated, plain_request
from tests.faces.mcp.tools import INITIALIZE
from tests.service import AGENT
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak import App, Context, Deprecation, Refusal
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.settings import HttpAssembly
from bespeak.app.server.target import load_app
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.http.reader import Asked, HttpRequestReader
from bespeak.protocol.exchange.messages import Connection
from bespeak.protocol.wire.messages import DEFAULT_LIMITS
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.settings import MEMORY, open_store
from bespeak.state.store.store import Store

# The service.

_CHANGING = {"stream", "stream_digest", "previous_audit_id", "issued_at", "response_id"}
Answered = tuple[int, dict[str, str], str]


def make_app(log: list[Any]) -> App:  # noqa: C901 - one function for each kind of endpoint
    """Declare an endpoint of each kind that may be called in a way of its own; they note their calls."""
    app = App("Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example")

    @app.endpoint("QUERY", "/rooms", impact="informational", scopes=["rooms:read"], outcome="The rooms are returned.")
    def query_rooms(context: Context, beds: int = 1, city: str | None = None) -> dict[str, Any]:
        """Find rooms."""
        log.append((sorted(context.input.items()), context.agent_id, sorted(context.request.headers.items())))
        return {"beds": beds, "city": city, "scopes": list(context.principal.scopes)}

    @app.endpoint("CHECK", "/values", impact="informational", outcome="The value is returned.")
    def check(context: Context, value: Any = None) -> dict[str, Any]:
        """Check a value."""
        log.append(repr(value))
        return {"value": value, "nothing": None, "list": [None, {"none": None}]}

    @app.endpoint("LIST", "/floors", impact="informational", outcome="The floors are returned.")
    def floors() -> list[int]:
        """List the floors."""
        return [1, 2]

    @app.endpoint(
        "SUMMARIZE",
        "/rooms",
        impact="informational",
        deprecated=Deprecation(deprecated_in="1"),
        outcome="The summary is returned.",
    )
    async def summarize(words: int = 1) -> dict[str, str]:
        """Summarize the rooms."""
        await asyncio.sleep(0)
        return {"text": "é\U0001f600 " * min(words, 99)}

    @app.endpoint(
        "ADJUST",
        "/rooms/{room_id}",
        impact="reversible",
        scopes=["rooms:read"],
        errors={"taken": "Taken."},
        outcome="The price is changed.",
    )
    def adjust(context: Context, room_id: str, price: float) -> dict[str, Any]:
        """Adjust a price."""
        log.append((room_id, price, context.request.headers.get("idempotency-key")))
        if price < 0:
            raise Refusal("taken", "Not below zero.", price=price)
        return {"room_id": room_id, "price": price, "times": len(log)}

    @app.endpoint("RESET", "/rooms", impact="reversible", scopes=["rooms:write"], outcome="The rooms are as new.")
    def reset() -> None:
        """Reset the rooms."""
        raise RuntimeError("secret of the handler")

    @app.endpoint("MEASURE", "/rooms", impact="informational", outcome="The sizes are returned.")
    def measure() -> dict[str, int]:
        """Measure the rooms."""
        return {"size": "large"}  # type: ignore[dict-item] # breaks the contract

    @app.endpoint("BOOK", "/room", impact="irreversible", outcome="The room is booked.")
    def book(room_id: str) -> dict[str, str]:
        """Book a room."""
        return {"booked": room_id}

    @app.endpoint("PURCHASE", "/room", impact="irreversible", confirm=False, outcome="The room is bought.")
    def purchase(room_id: str) -> dict[str, str]:
        """Buy a room."""
        log.append(room_id)
        return {"bought": room_id}

    @app.endpoint("SCAN", "/rooms", impact="informational", outcome="The rooms are known.")
    def scan(context: Context, rooms: int = 2) -> dict[str, int]:
        """Scan the rooms."""
        for number in range(1, min(rooms, 9) + 1):
            context.progress(number, 9, f"room {number}")
        return {"rooms": rooms}

    @app.endpoint(
        "SCAN", "/floors", impact="informational", errors={"closed": "It is closed."}, outcome="The floors are known."
    )
    async def scan_floors(context: Context, fail: bool = False) -> dict[str, int]:
        """Scan the floors."""
        context.progress(1)
        await asyncio.sleep(0)
        context.progress(2.5, message="é")
        if fail:
            raise Refusal("closed")
        await asyncio.sleep(0)
        return {"floors": 2}

    @app.endpoint("FIND", "/regions", impact="informational", outcome="The region is returned.")
    def regions(region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> dict[str, str]:
        """Find a region."""
        return {"region": region}

    @app.endpoint("INSPECT", "/ledger", impact="informational", internal=True, outcome="The ledger is returned.")
    def internal() -> None:
        """Inspect the ledger."""

    return app


# The comparison.


@dataclass
class Side:
    """One of the two services, with what its handlers noted."""

    mcp: Any
    keeper: Keeper
    store: Store
    log: list[Any]
    sessions: list[str]
    """Id of a session of each caller, if the service keeps any."""
    read: int = 0
    """Position of the last audit record that was compared."""

    async def records(self) -> list[Any]:
        """Return the audit records since the last call, without what differs from call to call."""
        rows = await self.store.read(ScanAudit(after=self.read))
        self.read = max([self.read, *(row[0] for row in rows)])
        payloads = (payload_of(row[5]) or {} for row in rows)
        return [{name: value for name, value in each.items() if name not in _CHANGING} for each in payloads]


@dataclass
class Pair:
    """Two equal services."""

    runner: asyncio.Runner
    fast: Side
    slow: Side
    authority: tuple[dict[str, str], ...]
    taken: int = 0
    seen: int = 0

    def compare(self, case: Case) -> str | None:
        """Answer a case by the lane and by the SDK; return what differs. None also if the lane does not take it."""
        self.seen += 1
        caller = sum(seed for _, seed in case[1]) % len(self.authority)
        request = mutated(case, self.authority[caller]).encode()
        asked = [_read(request, side.sessions[caller]) for side in (self.fast, self.slow)]
        if asked[0] is None or asked[1] is None:
            return None
        for side in (self.fast, self.slow):
            side.log.clear()
        mine = self.runner.run(_answer_fast(self.fast.mcp, asked[0]))
        if mine is None:
            return None
        self.taken += 1
        theirs = self.runner.run(_call(self.slow.mcp, asked[1]))
        if mine != theirs:
            return f"{case}\n{request!r}\n  lane: {mine}\n  SDK:  {theirs}"
        records = [self.runner.run(side.records()) for side in (self.fast, self.slow)]
        if records[0] != records[1]:
            return f"{case}\n{request!r}\n  lane recorded {records[0]}\n  SDK recorded  {records[1]}"
        if repr(self.fast.log) != repr(self.slow.log):
            return f"{case}\n{request!r}\n  lane called {self.fast.log}\n  SDK called  {self.slow.log}"
        return None


def _read(request: bytes, session: str) -> Asked | None:
    """Read a request with the session of its caller; return None for one that does not reach MCP."""
    reader = HttpRequestReader(DEFAULT_LIMITS)
    reader.receive_data(request.replace(SESSION.encode(), session.encode()))
    asked = reader.next_event()
    return asked if isinstance(asked, Asked) and asked.head.path == "/mcp" else None


def _plainly(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> Answered:
    kept = {name.decode(): value.decode() for name, value in headers if name not in (b"content-length", b"date")}
    if "mcp-session-id" in kept:
        kept["mcp-session-id"] = SESSION
    if kept.get("content-type") == "application/json":
        return status, kept, json.dumps(json.loads(body), sort_keys=True)
    events = body.decode("utf-8", "surrogateescape").split("\r\n\r\n")
    return status, kept, "\n".join(map(_event, events))


def _event(text: str) -> str:
    """Write an event in a way that can be compared."""
    before, mark, data = text.partition("data: ")
    return f"{before}{json.dumps(json.loads(data), sort_keys=True)}" if mark else text


async def _answer_fast(mcp: Any, asked: Asked) -> Answered | None:
    found = mcp.answer(asked.head, asked.body, _peer())
    if found is None or isinstance(found, HttpResponse):
        return None if found is None else _plainly(found.status, found.headers, found.body)
    return await _call(found, asked)


def _peer() -> Connection:
    peer = Connection(face="http", peer="127.0.0.1:9", address="127.0.0.1")
    peer.answered = 1
    return peer


async def _call(app: Any, asked: Asked, sessions: list[str] | None = None) -> Answered:
    """Call an ASGI application; note the session that it opens."""
    body: list[bytes] = [asked.body]
    parts: list[bytes] = []
    start: dict[str, Any] = {}

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        parts.append(message.get("body", b""))

    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": asked.head.http_method,
        "path": asked.head.path,
        "raw_path": asked.head.path.encode(),
        "query_string": asked.head.query.encode(),
        "headers": list(asked.head.pairs),
        "client": ("127.0.0.1", 9),
        "state": {"bespeak.connection": _peer()},
    }
    await asyncio.wait_for(app(scope, receive, send), 30)
    if sessions is not None:
        sessions += [value.decode() for name, value in start["headers"] if name == b"mcp-session-id"]
    return _plainly(start["status"], start["headers"], b"".join(parts))


class _Closed:
    """A lane that takes nothing."""

    def take(self, *_: Any) -> None:
        return None


@contextmanager
def pair(*, tokens: bool = False, stateless: bool = False, audited: bool = False) -> Iterator[Pair]:
    """Start two equal services; with `tokens`, callers need one, and with `audited` every call waits for the store."""
    from bespeak.app.server.http_face import make_mcp

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        document, authority = _authority(Path(folder)) if tokens else (ServerDocument(), _OPEN)
        document = replace(document, audit=AuditSettings(records="all" if audited else "off"))
        sides = []
        for fast in (True, False):
            log: list[Any] = []
            assembled = assemble_target(load_app(make_app(log), Path()), "2026-11-16T00:00:00Z")
            store = open_store(MEMORY, role="sole")
            keeper = Keeper(assembled, store, document)
            runner.run(keeper.start())
            assembly = HttpAssembly(keeper.dispatcher, document.http, document.auth, loopback=True, stateless=stateless)
            mcp = make_mcp(assembly, document.mcp)
            runner.run(mcp.start())
            if not fast:
                mcp._lane = _Closed()  # type: ignore[assignment]
            mcp._sessions._clock = lambda: 0.0  # no session gets old
            sessions = [] if stateless else [runner.run(_open_session(mcp, caller)) for caller in authority]
            sides.append(Side(mcp, keeper, store, log, sessions or [""] * len(authority)))
        try:
            yield Pair(runner, *sides, authority)
        finally:
            for side in sides:
                runner.run(side.mcp.stop())
                runner.run(side.keeper.stop())


async def _open_session(mcp: Any, authority: dict[str, str]) -> str:
    """Open a session; call a tool in it, so that the lane knows it. Return an empty id if the caller is refused."""
    sent = plain_request(PLAIN - 1, authority)
    kept = [pair for pair in sent.headers if pair[0] not in ("Mcp-Session-Id", "MCP-Protocol-Version")]
    opening = Sent(kept, INITIALIZE)
    asked = _read(opening.encode(), "")
    assert asked is not None
    found: list[str] = []
    await _call(mcp, asked, found)
    if not found:
        return ""
    listing = _read(sent.encode(), found[0])
    assert listing is not None
    await _call(mcp, listing)
    return found[0]


_OPEN = (
    {"Agent-ID": AGENT, "Authority-Scope": "rooms:read, rooms:write"},
    {"Agent-ID": AGENT, "Authority-Scope": "rooms:read"},
    {},
)


def _authority(folder: Path) -> tuple[ServerDocument, tuple[dict[str, str], ...]]:
    key, now = new_key(), int(time.time())
    token = TokenSettings(keys=write_keys(folder / "keys.json", public(key)), issuer="https://login.example")

    def bearer(scope: str, **changes: Any) -> dict[str, str]:
        given = claims(agent_id=AGENT, iss="https://login.example", exp=now + 6000, iat=now, scope=scope)
        return {"Authorization": f"Bearer {sign(key, {**given, **changes})}"}

    callers = (bearer("rooms:read rooms:write"), bearer("rooms:read"), bearer("rooms:read", exp=now - 600), {})
    return ServerDocument(auth=AuthSettings(modes=("token",), token=token)), callers
