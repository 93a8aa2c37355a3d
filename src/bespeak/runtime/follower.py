"""Follower of a topic in the store: an in-memory copy, read again whenever the store changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds until a failed read of the store is retried."""


class Follower:
    """Calls `take_in` after every change of a topic, by any process, and never twice concurrently."""

    def __init__(self, topic: str, take_in: Callable[[Store], Awaitable[None]]) -> None:
        self._topic = topic
        self._take_in = take_in
        self._store: Store | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._behind = False
        self._refreshing = asyncio.Lock()

    async def follow(self, store: Store) -> None:
        """Load the content of a store, now and whenever it changes. Raises StoreError if it cannot be read now."""
        if self._store is not store:
            self._store = store
            store.watch(self._topic, self._catch_up)
        await self.refresh()

    async def refresh(self) -> None:
        """Load the changes of the store."""
        if self._store is not None:
            async with self._refreshing:  # so that an older read never replaces a newer one
                await self._take_in(self._store)

    async def close(self) -> None:
        """Cancel pending work."""
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.gather(self._catching_up, return_exceptions=True)

    def _catch_up(self) -> None:
        """Start a refresh; a change reported meanwhile is read afterwards."""
        self._behind = True
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.get_running_loop().create_task(self._refresh_until_done())

    async def _refresh_until_done(self) -> None:
        while self._behind:
            self._behind = False
            try:
                await self.refresh()
            except StoreError as error:
                # An agent may have been revoked, so read again as soon as possible.
                message = "could not read the %s in the store; retrying in %g s: %s"
                _logger.warning(message, self._topic, _PAUSE, error)
                self._behind = True
                await asyncio.sleep(_PAUSE)
