"""Removes what has expired while a server runs, a little at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bespeak.errors import StoreError
from bespeak.store.command import Conflict
from bespeak.store.commands.cases import PurgeCases
from bespeak.store.commands.expiry import PurgeExpired
from bespeak.store.store import Store

_logger = logging.getLogger(__name__)

EVERY_SECONDS: Final = 60.0
_ROUNDS: Final = 20
"""Transactions of one turn at most; what is left waits for the next turn."""
_CASES_KEPT: Final = 30 * 86400.0
"""Seconds for which the operator can still see what became of a confirmation."""
_PAUSE_SECONDS: Final = 0.05
"""Between two of them, so that requests are not behind a queue of removals."""


class Sweeper:
    """A task that asks the store once a minute. It is stopped before its store is closed."""

    def __init__(self, store: Store, every: float = EVERY_SECONDS) -> None:
        self._store = store
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-sweeper")

    async def stop(self) -> None:
        """End; what was begun is finished."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def sweep(self) -> int:
        """One turn: how many rows were removed."""
        removed = 0
        for turn in range(_ROUNDS):
            if turn:
                await asyncio.sleep(_PAUSE_SECONDS)
            outcome = await self._store.do(PurgeExpired(), PurgeCases(_CASES_KEPT))
            if isinstance(outcome, Conflict) or not any(outcome):
                break
            removed += sum(outcome)
        return removed

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.sweep()
            except StoreError as error:
                # Whoever needs the store is told; what has expired can wait.
                _logger.info("nothing was removed from the store: %s", error)
