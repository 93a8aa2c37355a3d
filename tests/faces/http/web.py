"""A face on a real port of this machine, and bytes sent to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.service import build, echo, make_endpoint

from bespeak.app.server.http_face import build_middleware, make_face
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.server import HttpServer
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits

TEXT: Mapping[str, Any] = {"room_id": {"type": "string"}, "guests": {"type": "integer"}}
BOOK = make_endpoint("BOOK", "/room", echo, properties=TEXT, impact="irreversible")
FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties=TEXT)


@dataclass(frozen=True)
class Answer:
    """One response as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Line:
    """A connection of one's own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, head_only: bool = False) -> Answer:
        """Read one response."""
        async with asyncio.timeout(20):
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            number = int(first.split()[1])
            length = 0 if head_only or number < 200 else int(headers.get("content-length", 0))
            return Answer(number, headers, await self._reader.readexactly(length))

    async def ask(self, data: bytes) -> Answer:
        self.send(data)
        return await self.answer()

    async def ended(self) -> bytes:
        """Return the remaining bytes until the server closes."""
        async with asyncio.timeout(20):
            return await self._reader.read()


class Web:
    """A face that is being served."""

    def __init__(self, face: HttpFace, server: HttpServer, port: int) -> None:
        self.face = face
        self.server = server
        self.port = port

    @asynccontextmanager
    async def line(self, ssl: Any = None) -> AsyncIterator[Line]:
        name = "127.0.0.1" if ssl is not None else None
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=ssl, server_hostname=name)
        try:
            yield Line(reader, writer)
        finally:
            writer.transport.abort()

    async def ask(self, data: bytes) -> Answer:
        """Send one request over a new connection."""
        async with self.line() as line:
            return await line.ask(data)


@asynccontextmanager
async def serving(
    *endpoints: Endpoint,
    settings: HttpSettings | None = None,
    limits: Limits = DEFAULT_LIMITS,
    timeouts: Timeouts | None = None,
    capacity: Capacity | None = None,
    ssl: Any = None,
    streamed: Mapping[str, Application] | None = None,
    **fields: Any,
) -> AsyncIterator[Web]:
    """Serve these endpoints; BOOK /room and FIND /rooms/{room_id} where none are given."""
    settings = settings or HttpSettings()
    face = make_face(build(*(endpoints or (BOOK, FIND)), **fields).dispatcher, settings, limits=limits, loopback=True)
    outer = build_middleware(face, settings)
    server = HttpServer(face, outer, streamed=streamed, timeouts=timeouts or Timeouts(), capacity=capacity)
    [(_, port)] = await server.start("127.0.0.1", 0, ssl=ssl)
    try:
        yield Web(face, server, port)
    finally:
        await server.close()


def post(target: str = "/room:book", body: object = None, *lines: str, method: str = "POST") -> bytes:
    """Encode a request."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {target} HTTP/1.1", "Host: localhost", *lines]
    if raw or method == "POST":
        head.append(f"Content-Length: {len(raw)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


def get(target: str, *lines: str) -> bytes:
    return post(target, None, *lines, method="GET")
