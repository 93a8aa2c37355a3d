"""HTTP servers that follow a script, on real sockets, and fetchers that know them by made-up names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import trustme

from bespeak.agent.discovery.fetcher import DocumentCache, Fetcher
from bespeak.protocol.address_guard import AddressGuard

HOST = "flights.test"
"""The name that servers here are known by; it leads to loopback."""


@dataclass
class Asked:
    """One request as the server got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Asked, asyncio.StreamWriter], Awaitable[None] | None]


@dataclass
class Web:
    """A scripted server on loopback."""

    port: int
    scheme: str = "https"
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{HOST}:{self.port}"

    @property
    def targets(self) -> list[str]:
        return [asked.target for asked in self.asked if asked.target != "/robots.txt"]


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def server_tls(name: str = HOST) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(name, "127.0.0.1").configure_cert(context)
    return context


@cache
def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


@contextmanager
def authority_file() -> Iterator[Path]:
    with authority().cert_pem.tempfile() as name:
        yield Path(name)


@contextlib.asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | bool | None = True) -> AsyncIterator[Web]:
    """A server with a good certificate, another one, or without TLS (False)."""
    writers: set[asyncio.StreamWriter] = set()
    context = server_tls() if tls is True else tls or None

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.LimitOverrunError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:-2])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                asked = Asked(method, target, headers, body)
                web.asked.append(asked)
                waiting = script(asked, writer)
                if waiting is not None:
                    await waiting
                await writer.drain()
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    web = Web(listening.sockets[0].getsockname()[1], "https" if context else "http")
    try:
        yield web
    finally:
        listening.close()
        for writer in writers:
            writer.close()


def send(writer: asyncio.StreamWriter, status: int, body: Any = b"", **headers: str) -> None:
    """A whole answer; what is no bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-").lower(): text for name, text in headers.items()}
    given.setdefault("content-length", str(len(content)))
    if content:
        given.setdefault("content-type", "application/json")
    lines = [f"{name}: {text}" for name, text in given.items() if text]
    writer.write("\r\n".join([f"HTTP/1.1 {status} Reason", *lines, "", ""]).encode("latin-1") + content)


def always(status: int, body: Any = b"", **headers: str) -> Script:
    return lambda asked, writer: send(writer, status, body, **headers)


def at(pages: dict[str, Any]) -> Script:
    """A script by path: a script, or what is answered with 200; robots.txt and everything else is not there."""

    def script(asked: Asked, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        page = pages.get(asked.target.partition("?")[0])
        if page is None:
            return send(writer, 404)
        return page(asked, writer) if callable(page) else send(writer, 200, page)

    return script


def in_turn(*scripts: Script) -> Script:
    """One script for each request that is not for robots.txt; the last one goes on."""
    waiting = list(scripts)

    def script(asked: Asked, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        if asked.target == "/robots.txt":
            return send(writer, 404)
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])(asked, writer)

    return script


def redirect(location: str, status: int = 302) -> Script:
    return always(status, location=location)


class Time:
    """A clock that stands still but for sleeping."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def resolve(host: str, port: int) -> list[str]:
    """Names under .test are on this machine, but for those that lead elsewhere."""
    known = {
        "metadata.test": ["169.254.169.254"],
        "mixed.test": ["93.184.216.34", "10.0.0.1"],
        "public.test": ["93.184.216.34"],
    }
    if host in known:
        return known[host]
    if host.endswith(".test"):
        return ["127.0.0.1"]
    raise OSError(-2, "Name or service not known")


class AnyPort(tuple[str, ...]):
    """Hosts for a guard, on whatever ports the servers of a test have."""

    def __contains__(self, typed: object) -> bool:
        return isinstance(typed, tuple) and typed[0] in tuple(self)


@contextlib.asynccontextmanager
async def fetching(
    *, cache: DocumentCache | None = None, time: Time | None = None, typed: tuple[str, ...] = (HOST,), **options: Any
) -> AsyncIterator[Fetcher]:
    """A fetcher that trusts the servers here and takes their name for typed by the user."""
    moment = time or Time()
    guard = AddressGuard(AnyPort(typed), resolve=resolve)
    fetcher = Fetcher(guard, tls=client_tls(), cache=cache, clock=moment, sleep=moment.sleep, **options)
    try:
        yield fetcher
    finally:
        await fetcher.close()
