"""Pooled connections for reads and for transactions of several steps."""

from __future__ import annotations

import asyncio
from typing import Final

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.postgres_address import COMMAND_SECONDS, Address, Connection

SIZE: Final = 10
"""Limit of connections; PostgreSQL allows 100 in all by default."""
_READING: Final = {"default_transaction_read_only": "on"}
"""Session default: a read cannot write by mistake; a transaction that writes says so."""


class Pool:
    """Connections that are opened on demand and kept for reuse."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(SIZE)

    async def take(self) -> Connection:
        """Return an open connection; raise StoreUnavailableError if none is available in time."""
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailableError(f"{self._address.name} is busy: all {SIZE} connections are in use.") from None
        try:
            while self._free:
                connection = self._free.pop()
                if not connection.is_closed():
                    return connection
            return await self._address.connect(**_READING)
        except BaseException:
            self._places.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Return a connection to the pool unless it is broken or in use."""
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._free.append(connection)
        self._places.release()

    async def close(self) -> None:
        """Close idle connections."""
        while self._free:
            await close(self._free.pop())


async def close(connection: Connection) -> None:
    """Close a connection gracefully, or terminate it."""
    try:
        await connection.close(timeout=COMMAND_SECONDS)
    except Exception:  # noqa: BLE001 - it is gone one way or the other
        connection.terminate()
