"""Client-side rate limit: at most as many requests per minute as the service allows (ai-discovery 3.6)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

_MINUTE: Final = 60.0


class Pace:
    """Sliding-window rate limiter over one minute."""

    def __init__(
        self,
        per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._turns: deque[float] = deque()
        """Start times of the requests of the last minute, including reserved ones in the future."""

    async def turn(self, longest: float) -> float:
        """Wait for the next slot and return 0. If it is more than `longest` seconds away, return that delay at once."""
        now = self._clock()
        while self._turns and self._turns[0] <= now - _MINUTE:
            self._turns.popleft()
        full = len(self._turns) >= self.per_minute
        wait = self._turns[-self.per_minute] + _MINUTE - now if full else 0.0
        if wait > longest:
            return wait
        self._turns.append(now + wait)
        if wait > 0:
            await self._sleep(wait)
        return 0.0
