"""Something in the store that a process holds in memory and reads again whenever it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds until a store that could not be read is asked again."""


class Follower:
    """Calls `take_in` after every change of a topic, by whichever process, and never twice at the same time."""

    def __init__(self, topic: str, take_in: Callable[[Store], Awaitable[None]]) -> None:
        self._topic = topic
        self._take_in = take_in
        self._store: Store | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._behind = False
        self._refreshing = asyncio.Lock()

    async def follow(self, store: Store) -> None:
        """Take the content of a store in, now and whenever it changes. Raises StoreError if it cannot be read now."""
        if self._store is not store:
            self._store = store
            store.watch(self._topic, self._catch_up)
        await self.refresh()

    async def refresh(self) -> None:
        """Take in what has changed in the store that is followed."""
        if self._store is not None:
            async with self._refreshing:  # so that nobody puts what was read before over what was read after
                await self._take_in(self._store)

    async def close(self) -> None:
        """Give up what is under way."""
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.gather(self._catching_up, return_exceptions=True)

    def _catch_up(self) -> None:
        """Begin to refresh; a change that is reported meanwhile is read when that is done."""
        self._behind = True
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.get_running_loop().create_task(self._refresh_until_done())

    async def _refresh_until_done(self) -> None:
        while self._behind:
            self._behind = False
            try:
                await self.refresh()
            except StoreError as error:
                # Somebody may have been revoked: what could not be read now is read as soon as it can be.
                message = "the %s in the store could not be read, and will be in %g s: %s"
                _logger.warning(message, self._topic, _PAUSE, error)
                self._behind = True
                await asyncio.sleep(_PAUSE)
