"""Notifications from other processes: LISTEN on a dedicated connection, and a slow poll for lost ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.postgres_address import Address, Connection
from bespeak.state.store.postgres_batch import CHANNEL
from bespeak.state.store.postgres_pool import close

_logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
"""Seconds between polls: some proxies drop notifications."""


class Listener:
    """Reports changed topics; all of them after a lost connection, because notifications may be missing."""

    def __init__(self, address: Address, tell: Callable[[str], None], tell_all: Callable[[], None]) -> None:
        self._address = address
        self._tell = tell
        self._tell_all = tell_all
        self._lost = asyncio.Event()
        self._connection: Connection | None = None
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start listening."""
        connection = await self._connect()
        self._work = asyncio.get_running_loop().create_task(self._run(connection))

    async def close(self) -> None:
        """Stop listening."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        if self._connection is not None:
            await close(self._connection)

    async def _run(self, connection: Connection) -> None:
        while True:
            try:
                if connection.is_closed():
                    connection = await self._connect()
                    self._tell_all()
                await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, giving up would leave everybody deaf
                if not isinstance(error, StoreUnavailableError):
                    _logger.error("%s", self._address.explain(error))
                await self._address.pause()

    async def _connect(self) -> Connection:
        connection = await self._address.connect()
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        try:
            await connection.add_listener(CHANNEL, lambda _, __, ___, topic: self._tell(topic))
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        return connection

    async def _listen(self, connection: Connection) -> None:
        """Listen until the connection is lost. A regular query detects a dead connection."""
        while not connection.is_closed():
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._lost.wait()
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1")
                except Exception:  # noqa: BLE001 - whatever it is, this connection brings no news any more
                    connection.terminate()
                    return
                self._tell_all()
