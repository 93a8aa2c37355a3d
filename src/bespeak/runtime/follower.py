"""Follower of a topic in the store: an in-memory copy, read again whenever the store changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.store import Store, level_of

_logger = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds until a failed read of the store is retried."""
_READINGS: Final = 3
"""Readings within the age that a copy may have, so that one that fails does not make it stale."""


class Follower:
    """Calls `take_in` after every change of a topic, by any process, and never twice concurrently.

    With `stale_after` the age of the copy has a bound: it is also read from time to time, and `flip` is called with
    True when it was last read so many seconds ago, and with False when it is read again. A store without other
    processes changes nothing behind our back.
    """

    def __init__(
        self,
        topic: str,
        take_in: Callable[[Store], Awaitable[None]],
        *,
        stale_after: float | None = None,
        flip: Callable[[bool], None] | None = None,
    ) -> None:
        self._topic = topic
        self._take_in = take_in
        self._stale_after = stale_after
        self._flip = flip
        self._is_stale = False
        self._timers: tuple[asyncio.TimerHandle, ...] = ()
        self._store: Store | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._behind = False
        self._is_closed = False
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
                began = asyncio.get_running_loop().time()
                await self._take_in(self._store)
                self._note_reading(self._store, began)

    def _note_reading(self, store: Store, began: float) -> None:
        """Set the time of the next reading, and the time at which this one is too old."""
        if self._stale_after is None or store.sole or self._is_closed:
            return
        for timer in self._timers:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers = (
            loop.call_at(began + self._stale_after / _READINGS, self._catch_up),
            loop.call_at(began + self._stale_after, self._set_stale, True),
        )
        # A reading that took this long says nothing about now.
        if loop.time() < began + self._stale_after:
            self._set_stale(False)

    def _set_stale(self, stale: bool) -> None:
        if stale != self._is_stale and self._flip is not None:
            self._is_stale = stale
            self._flip(stale)

    async def close(self) -> None:
        """Cancel pending work."""
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
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
                _logger.log(level_of(error), message, self._topic, _PAUSE, error)
                self._behind = True
                await asyncio.sleep(_PAUSE)
