"""One limit over several processes: each takes from its own buckets and synchronises with the store a few times a
second.

No request waits for the store. Between two exchanges every process admits what its own bucket holds, so at most
`processes * (burst + rate * PERIOD)` calls pass at once. The excess is a debt: all processes refuse until it is made up
for, so the rate holds over a longer time. While the store is unavailable, each process counts on its own.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final

from bespeak.errors import StoreError
from bespeak.runtime.rate import Buckets, Rates
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.rate import BucketUse, TakeTokens
from bespeak.state.store.store import Store

PERIOD: Final = 0.2
"""Seconds between two exchanges."""

_LONGEST_SILENCE: Final = 60.0
"""Minimum seconds between two log entries about an unavailable store."""

_MOST: Final = 512
"""Maximum number of buckets per transaction, so that others do not wait long for it."""

_SECOND: Final = 1_000_000_000
_logger = logging.getLogger(__name__)


class RateExchange:
    """Synchronises the buckets of this process with those of others."""

    def __init__(self, rates: Rates, store: Store) -> None:
        self._named = rates.named()
        self._store = store
        self._task: asyncio.Task[None] | None = None
        for buckets in self._named.values():
            buckets.taken = {}

    def start(self) -> None:
        """Start exchanging in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="rate-exchange")

    async def close(self) -> None:
        """Send the remaining counts to the store, and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self._attempt()

    async def exchange(self) -> None:
        """Send what this process took and receive the totals. Raises StoreError if the store is unavailable."""
        sources: dict[str, tuple[Buckets, str]] = {}
        uses: list[BucketUse] = []
        for scope, buckets in self._named.items():
            for key, (cost, elapsed) in buckets.tell().items():
                name = f"{scope}:{key}"
                sources[name] = (buckets, key)
                uses.append(BucketUse(name, cost / _SECOND, elapsed / _SECOND))
        waiting = iter(uses)
        while batch := tuple(islice(waiting, _MOST)):
            outcome = await self._store.do(TakeTokens(batch))
            assert not isinstance(outcome, Conflict), "nothing is refused here"
            for name, seconds in outcome[0].items():
                buckets, key = sources[name]
                buckets.learn(key, int(seconds * _SECOND))

    async def _run(self) -> None:
        silent_until = 0.0
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(PERIOD)
            failed = await self._attempt()
            if failed is not None and clock() >= silent_until:
                silent_until = clock() + _LONGEST_SILENCE
                _logger.warning("rate limits are counted per process while the store is unavailable: %s", failed)

    async def _attempt(self) -> StoreError | None:
        try:
            await self.exchange()
        except StoreError as error:
            # It may have been counted. Sending it again could count it twice; a lenient limit is preferable.
            return error
        return None
