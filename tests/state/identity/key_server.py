"""An HTTP server on loopback that publishes keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class KeyServer:
    """An HTTP server that answers with what the test has put there."""

    def __init__(self) -> None:
        self.body = b""
        self.status = "200 OK"
        self.headers = ""
        self.fetched = 0
        self.released = asyncio.Event()
        self.released.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks.json"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            self.fetched += 1
            await self.released.wait()
            head = (
                f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n{self.headers}\r\n"
            )
            writer.write(head.encode() + self.body)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def publishing(keys: str) -> AsyncIterator[KeyServer]:
    """Run a server that publishes keys."""
    found = KeyServer()
    found.body = keys.encode()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        found.released.set()
        server.close()
