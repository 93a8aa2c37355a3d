"""Limits of a server: descriptors and memory that all connections may use together, and timeouts for peers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

import msgspec


def return_memory() -> None:
    """Return freed memory to the system; do nothing where the C library offers no way."""
    if (trim := _find_trim()) is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # not glibc, or Windows
        return None
    return found


MAX_CONNECTIONS: Final = 10_000
MAX_BUFFERED: Final = 64 * 1024 * 1024
UNREAD_FACTOR: Final = 4  # times `buffered` for unread answers, which cannot be refused, only cut off
UNCOUNTED: Final = 8192  # bytes that each connection may hold uncounted: small requests are served in any case
REFUSED: Final = 32  # connections above the limit that are open while they are refused; fewer if that is low
_BURST: Final = 8 * 1024 * 1024  # bytes of memory that are worth the milliseconds of returning them


class Crowd(Protocol):
    @property
    def count(self) -> int: ...  # of admitted connections, with TLS handshakes and requests of disconnected peers


class Budget:
    """Bytes that connections hold. Above the limit those who stall, having held theirs for longest, lose them first."""

    __slots__ = ("_drop", "_holders", "held", "most", "peak")

    def __init__(self, most: int, drop: Callable[[Any], None]) -> None:
        """Create a budget; `drop` makes a holder release what it can."""
        self.most = most
        self.held = 0
        self.peak = 0  # largest sum since memory was last returned to the system
        self._drop = drop
        self._holders: dict[Any, int] = {}

    def hold(self, holder: Any, size: int) -> None:
        """Record how many bytes a holder has now; drop others, then this one, if the sum is above the limit."""
        holders = self._holders
        before = holders.get(holder, 0)
        if size <= UNCOUNTED:
            if before:
                self.held -= holders.pop(holder)
            return
        holders[holder] = size
        self.held += size - before
        self.peak = max(self.peak, self.held)
        if self.held > self.most and size > before:
            for oldest in tuple(holders):
                self._drop(oldest)
                if self.held <= self.most:
                    break


class Capacity:
    """The limits of one process, shared by its faces."""

    __slots__ = ("answers", "connections", "crowds", "most_refused", "refused", "refused_at", "requests")

    def __init__(self, connections: int = MAX_CONNECTIONS, buffered: int = MAX_BUFFERED) -> None:
        self.connections = connections  # maximum number of connections
        self.requests = Budget(buffered, lambda holder: holder.drop_request())
        """Bytes of requests that are incomplete or wait for their answer."""
        self.answers = Budget(UNREAD_FACTOR * buffered, lambda holder: holder.drop_answers())  # not read by peers
        self.most_refused = max(1, min(REFUSED, connections // 8))
        """Maximum number of connections above the limit, which need descriptors too."""
        self.crowds: list[Crowd] = []
        self.refused: dict[Any, Callable[[], None]] = {}
        """Connections above the limit, oldest first, with the function that ends them."""
        self.refused_at = -math.inf  # loop time at which the last connection was refused

    @property
    def is_full(self) -> bool:
        return sum(crowd.count for crowd in self.crowds) - len(self.refused) >= self.connections

    def trim(self) -> None:
        """Return memory to the system after a burst."""
        for budget in (self.requests, self.answers):
            if budget.peak > _BURST and budget.held < budget.peak // 4:
                budget.peak = budget.held
                return_memory()

    def refuse(self, connection: Any, end: Callable[[], None], now: float) -> None:
        """Register a connection above the limit; end the oldest of too many, so that the next one is told too."""
        self.refused_at = now
        self.refused[connection] = end
        if len(self.refused) > self.most_refused:
            self.refused.pop(next(iter(self.refused)))()


class Timeouts(msgspec.Struct, frozen=True):
    """Timeouts in seconds. One timer checks them all, so each may be late by a quarter of the shortest."""

    idle: float = 75.0  # Maximum time between two requests. Core 1 recommends at least 60.
    read: float = 30.0  # maximum time from the first byte of a message to its last: slow sending does not extend it
    write: float = 30.0  # maximum time in which the peer reads none of the pending bytes
    handshake: float = 10.0
    drain: float = 10.0  # maximum time for running requests to finish when the server stops
    linger: float = 2.0  # maximum time for a refused peer to stop sending; closing earlier could lose the answer
    crowded: float = 5.0  # maximum time to the first complete request while the server is full

    @property
    def period(self) -> float:
        return min(1.0, min(self.idle, self.read, self.write, self.linger, self.crowded) / 4)


DEFAULT_TIMEOUTS: Final = Timeouts()
