"""Fair shares of what agents compete for: places and turns of the event loop, each given to agents in rotation.

An agent with many requests waits behind its own requests, so that it slows another agent at most twofold.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


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
                    self._pass_on(owner)
                raise
            finally:
                self._forget(owner, turn)
        try:
            yield
        finally:
            self._pass_on(owner)

    def _pass_on(self, served: str) -> None:
        """Give a turn to the next owner: another one than was just served, if one waits."""
        while self._waiting:
            _, turn = _take_next(self._waiting, served)
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


class Pace:
    """Starts work that holds the event loop: once per turn of the loop, for owners in rotation."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        """Work that has not started, by owner, in the order of their next turns."""
        self._served: str | None = None

    def start(self, owner: str, work: Callable[[], None]) -> None:
        """Start work when it is the owner's turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._start_next)
        self._waiting.setdefault(owner, deque()).append(work)

    async def wait(self, owner: str) -> None:
        """Return when it is the owner's turn."""
        turn = asyncio.get_running_loop().create_future()
        self.start(owner, lambda: None if turn.done() else turn.set_result(None))
        await turn

    def _start_next(self) -> None:
        self._served, work = _take_next(self._waiting, self._served)
        if self._waiting:  # before the work, which may raise
            asyncio.get_running_loop().call_soon(self._start_next)
        work()


def _take_next(waiting: OrderedDict[str, deque[T]], served: str | None) -> tuple[str, T]:
    """Take what waits first of the next owner. The owner that was just served is the last of all."""
    if next(iter(waiting)) == served:
        waiting.move_to_end(served)
    owner, queue = next(iter(waiting.items()))
    first = queue.popleft()
    waiting.move_to_end(owner)
    if not queue:
        del waiting[owner]
    return owner, first
