"""The clock of a server: carries out what is due, now and after a restart, in one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import TOPIC, ClaimDue, NextDue, Record
from bespeak.state.store.store import Store, level_of

_logger = logging.getLogger(__name__)

Carry = Callable[[Sequence[Record]], Awaitable[None]]
"""Carries out records of one kind that are due. What it leaves unchanged is due again after the lease."""

_LEASE: Final = 30.0
_AT_ONCE: Final = 1000
"""Records of a kind claimed in one transaction, which holds up requests for a few milliseconds."""
_LONGEST_SLEEP: Final = 5.0
"""Seconds after which the store is asked again, in case a wake-up was lost."""
_PAUSE: Final = 1.0
"""Seconds after a failure."""


class DueLoop:
    """A task that claims due records and hands them to whoever knows their kind. No kind waits for another."""

    def __init__(self, store: Store, kinds: Mapping[str, Carry], *, lease: float = _LEASE) -> None:
        self._store = store
        self._kinds = dict(kinds)
        self._lease = lease
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Task[None]] = {}
        """Tasks that carry out what is due, by kind."""

    def start(self) -> None:
        """Start in the running loop; the store must be started."""
        if self._kinds and self._task is None:
            self._store.watch(TOPIC, self._woken.set)
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-due")

    async def stop(self) -> None:
        """Stop. Work that is not finished is due again after its lease."""
        tasks = [*([self._task] if self._task else []), *self._busy.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None

    async def turn(self) -> int:
        """Carry out what is due now, up to a limit for each kind, and return the number of records."""
        return sum([await self._carry_out(kind) for kind in self._kinds])

    async def _carry_out(self, kind: str) -> int:
        """Carry out what is due of a kind, up to the limit, and return the number of records."""
        claimed = await self._store.do(ClaimDue(kind, _AT_ONCE, self._lease))
        assert not isinstance(claimed, Conflict)
        records: Sequence[Record] = claimed[0]
        if records:
            try:
                await self._kinds[kind](records)
            except StoreError:
                raise
            except Exception as error:  # what comes after it must not suffer
                _logger.error(
                    "What is due of kind %s failed; it is tried again in %g s", kind, self._lease, exc_info=error
                )
        return len(records)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            wait = _LONGEST_SLEEP
            idle = tuple(kind for kind in self._kinds if kind not in self._busy)
            try:
                due: Mapping[str, float] = await self._store.read(NextDue(idle)) if idle else {}
            except StoreError as error:
                _logger.log(level_of(error), "could not read what is due; retrying in %g s: %s", _PAUSE, error)
                await asyncio.sleep(_PAUSE)
                continue
            for kind, seconds in due.items():
                if seconds <= 0:
                    self._begin(kind)
                else:
                    wait = min(wait, seconds)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass

    def _begin(self, kind: str) -> None:
        def end(_: asyncio.Task[None]) -> None:
            del self._busy[kind]
            self._woken.set()

        work = asyncio.get_running_loop().create_task(self._work(kind), name=f"bespeak-{kind}")
        self._busy[kind] = work
        work.add_done_callback(end)

    async def _work(self, kind: str) -> None:
        """Carry out all that is due of a kind."""
        try:
            while await self._carry_out(kind) >= _AT_ONCE:
                pass
        except StoreError as error:
            _logger.log(level_of(error), "could not carry out what is due; retrying in %g s: %s", _PAUSE, error)
            await asyncio.sleep(_PAUSE)
