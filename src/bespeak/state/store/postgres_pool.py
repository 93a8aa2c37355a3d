"""The connections for whatever needs one of its own: reading, and transactions of several steps."""

from __future__ import annotations

import asyncio
from typing import Final

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.postgres_address import COMMAND_SECONDS, Address, Connection

SIZE: Final = 10
"""Connections at most; a PostgreSQL has 100 in all unless told otherwise."""
_READING: Final = {"default_transaction_read_only": "on"}
"""What only reads cannot write by mistake; a transaction that writes says so."""


class Pool:
    """Connections that are made when needed and kept for the next one."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(SIZE)

    async def take(self) -> Connection:
        """A connection that works as far as one can see; StoreUnavailableError when none can be had in time."""
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
        """Let the next one have it, unless it is broken or something is under way on it."""
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._free.append(connection)
        self._places.release()

    async def close(self) -> None:
        """Close what is not in use."""
        while self._free:
            await close(self._free.pop())


async def close(connection: Connection) -> None:
    """Close a connection in good order, or at least close it."""
    try:
        await connection.close(timeout=COMMAND_SECONDS)
    except Exception:  # noqa: BLE001 - it is gone one way or the other
        connection.terminate()
