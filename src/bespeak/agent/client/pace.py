"""As many requests in a minute as a service says it takes, and no more (ai-discovery 3.6)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

_MINUTE: Final = 60.0


class Pace:
    """Gives turns, so that no minute has more of them than were agreed on."""

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
        """When each of the last minute was, or will be."""

    async def turn(self, longest: float) -> float:
        """Wait for the next turn and give 0; if it is more than `longest` seconds away, give these and take none."""
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
