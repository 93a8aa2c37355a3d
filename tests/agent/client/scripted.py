"""AGTP servers that follow a script, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from bespeak.agent.client.connect import connect
from bespeak.agent.client.sender import RetryPolicy
from bespeak.agent.client.service import ServiceClient

AGENT = "ab" * 32
AT_ONCE = RetryPolicy(attempts=3, first_delay=0, longest_delay=0)


@dataclass
class Seen:
    """One request as the server got it."""

    line: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None] | None]


@dataclass
class Server:
    """A scripted AGTP server on loopback."""

    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most: int = 0

    @property
    def uri(self) -> str:
        return f"agtp://127.0.0.1:{self.port}"


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    writers: set[asyncio.StreamWriter] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.open += 1
        server.most = max(server.most, server.open)
        writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.LimitOverrunError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:-2])}
                seen = Seen(head[0], headers, await reader.readexactly(int(headers.get("content-length", "0"))))
                server.seen.append(seen)
                waiting = script(seen, writer)
                if waiting is not None:
                    await waiting
                await writer.drain()
        writer.close()
        server.open -= 1

    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    server = Server(listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for writer in writers:
            writer.close()


def write(writer: asyncio.StreamWriter, status: int, body: Any = None, **headers: str) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"AGTP/1.0 {status} Reason", f"Content-Length: {len(content)}", *lines, "", ""]
    writer.write("\r\n".join(head).encode() + content)


def always(status: int, body: Any = None, **headers: str) -> Script:
    return lambda seen, writer: write(writer, status, body, **headers)


def in_turn(*scripts: Script) -> Script:
    """One script for each request; the last one goes on."""
    waiting = list(scripts)

    def script(seen: Seen, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])(seen, writer)

    return script


def hang_up(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.close()


@contextlib.asynccontextmanager
async def service_of(script: Script, **options: Any) -> AsyncIterator[tuple[ServiceClient, Server]]:
    async with serving(script) as server, connect(server.uri, **{"retry": AT_ONCE, **options}) as service:
        yield service, server


def endpoint(method: str, path: str, *, is_idempotent: bool) -> dict[str, Any]:
    return {
        "method": method,
        "path": path,
        "description": "Book a room.",
        "semantic": {
            "intent": "Book a room.",
            "actor": "agent",
            "outcome": "A room is booked.",
            "capability": "transaction",
            "confidence": 0.9,
            "impact": "reversible",
            "is_idempotent": is_idempotent,
        },
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object"},
        "errors": [],
        "handler": {"type": "registered_function"},
    }


def manifest(*endpoints: dict[str, Any], versions: tuple[str, ...] = ("1.0.0",), **members: Any) -> dict[str, Any]:
    return {
        "agtp_version": "1.0",
        "agtp_api_version": "1.0",
        "document_version": "v1",
        "catalog_version": versions[0],
        "catalog_versions_supported": list(versions),
        "server": {"server_id": "rooms", "operator": "Acme", "contact": "ops@acme.example", "supported_features": []},
        "embedded_methods": [],
        "endpoints": list(endpoints),
        "agent_disclosure": "public",
        "hosted_agents": [],
        "policies": {
            "wildcards_accepted": False,
            "anonymous_discovery": True,
            "scope_required_for_invocation": True,
            "synthesis_enabled": False,
            "max_synthesis_depth": 10,
        },
        **members,
    }
