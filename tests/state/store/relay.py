"""A relay between a store and its database, for faults of the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Relay:
    """Forwards bytes until told to drop them; the connection then looks alive but nothing answers."""

    def __init__(self, dsn: str) -> None:
        self._parts = urlsplit(dsn)
        self._open = asyncio.Event()
        self._open.set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Start the relay and return the address through it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return self._parts._replace(netloc=f"{self._parts.username}@127.0.0.1:{port}").geturl()

    def swallow(self) -> None:
        """Hold back all bytes from now on."""
        self._open.clear()

    def pass_on(self) -> None:
        """Forward all bytes from now on, including those held back."""
        self._open.set()

    def cut(self) -> None:
        """Close all connections, like a short network failure."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.pass_on()
        self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        self._writers += [writer, there]
        await asyncio.gather(self._pump(reader, there), self._pump(there_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def relayed(dsn: str) -> AsyncIterator[tuple[Relay, str]]:
    """Run a relay and return the address through it."""
    relay = Relay(dsn)
    address = await relay.start()
    try:
        yield relay, address
    finally:
        await relay.close()
