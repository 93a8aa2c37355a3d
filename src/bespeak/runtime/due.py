"""The clock of a server: carries out what is due, now and after a restart, in one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import TOPIC, ClaimDue, NextDue, Record
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

Carry = Callable[[Sequence[Record]], Awaitable[None]]
"""Carries out records of one kind that are due. What it leaves unchanged is due again after the lease."""

_LEASE: Final = 30.0
_AT_ONCE: Final = 500
"""Records claimed in one transaction."""
_LONGEST_SLEEP: Final = 5.0
"""Seconds after which the store is asked again, in case a wake-up was lost."""
_PAUSE: Final = 1.0
"""Seconds after a failure."""


class DueLoop:
    """A task that claims due records and hands them to whoever knows their kind."""

    def __init__(self, store: Store, kinds: Mapping[str, Carry], *, lease: float = _LEASE) -> None:
        self._store = store
        self._kinds = dict(kinds)
        self._lease = lease
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start in the running loop; the store must be started."""
        if self._kinds and self._task is None:
            self._store.watch(TOPIC, self._woken.set)
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-due")

    async def stop(self) -> None:
        """Stop. Work that is not finished is due again after its lease."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def turn(self) -> int:
        """Carry out what is due now and return the number of records."""
        claimed = await self._store.do(ClaimDue(tuple(self._kinds), _AT_ONCE, self._lease))
        assert not isinstance(claimed, Conflict)
        by_kind: dict[str, list[Record]] = {}
        for record in claimed[0]:
            by_kind.setdefault(record.kind, []).append(record)
        for kind, records in by_kind.items():
            try:
                await self._kinds[kind](records)
            except StoreError:
                raise
            except Exception as error:  # the other kinds must not wait for it
                _logger.error(
                    "What is due of kind %s failed; it is tried again in %g s", kind, self._lease, exc_info=error
                )
        return len(claimed[0])

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                if await self.turn():
                    continue
                due = await self._store.read(NextDue(tuple(self._kinds)))
                wait = _LONGEST_SLEEP if due is None else min(max(due, 0.0), _LONGEST_SLEEP)
            except StoreError as error:
                _logger.warning("could not read what is due; retrying in %g s: %s", _PAUSE, error)
                await asyncio.sleep(_PAUSE)
                continue
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass
