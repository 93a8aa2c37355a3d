"""Pooled connections for reads and for transactions of several steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.postgres_address import COMMAND_SECONDS, Address, Connection

READERS: Final = 6
WRITERS: Final = 6
"""Limits of connections; PostgreSQL allows 100 in all by default. Reads never wait for transactions, which may wait for
rows.
"""
READING: Final = {"default_transaction_read_only": "on"}
"""Session default: a read cannot write by mistake; a transaction that writes says so."""


_LONGEST_WAIT: Final = 4 * COMMAND_SECONDS
_SHARE: Final = 0.2
"""Share of the latest use of a connection in the time that one is expected to take."""


class Pool:
    """Connections that are opened on demand and kept for reuse.

    Whoever waits for one is refused after `COMMAND_SECONDS` more than those in front of it are expected to take. Where
    the database is far away they take longer, although nothing is wrong.
    """

    def __init__(self, address: Address, size: int, settings: Mapping[str, str]) -> None:
        self._address = address
        self._size = size
        self._settings = settings
        self._free: list[Connection] = []
        self._taken_at: dict[Connection, float] = {}
        self._typical = 0.0
        """Seconds for which a connection is expected to be in use."""
        self._waiting = 0
        self._places = asyncio.Semaphore(size)

    async def take(self) -> Connection:
        """Return an open connection; raise StoreUnavailableError if none is available in time."""
        ahead = self._typical * self._waiting / self._size
        self._waiting += 1
        try:
            async with asyncio.timeout(min(COMMAND_SECONDS + ahead, _LONGEST_WAIT)):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailableError(
                f"{self._address.name} is busy: all {self._size} connections are in use."
            ) from None
        finally:
            self._waiting -= 1
        try:
            connection = await self._open()
        except BaseException:
            self._places.release()
            raise
        self._taken_at[connection] = time.monotonic()
        return connection

    async def _open(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        return await self._address.connect(**self._settings)

    def give_back(self, connection: Connection) -> None:
        """Return a connection to the pool unless it is broken or in use."""
        took = time.monotonic() - self._taken_at.pop(connection)
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._typical += _SHARE * (took - self._typical)
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
