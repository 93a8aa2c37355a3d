"""Turns at something scarce: whoever asks for much waits behind its own, not others behind it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """A semaphore that serves owners in rotation, with bounds on those who wait."""

    def __init__(self, places: int, *, most: int, most_of_one: int) -> None:
        self._free = places
        self._most = most
        self._most_of_one = most_of_one
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Owners in the order of their next turns."""

    def has_room(self, owner: str) -> bool:
        """Return True if an owner may ask for another turn."""
        own = len(self._waiting.get(owner, ()))
        return own < self._most_of_one and sum(map(len, self._waiting.values())) < self._most

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(owner, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
            finally:
                self._forget(owner, turn)
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give a turn to the next owner."""
        while self._waiting:
            owner, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            self._waiting.move_to_end(owner)
            if not turns:
                del self._waiting[owner]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(owner)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[owner]
