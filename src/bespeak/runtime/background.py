"""Background work of a server: in-memory copies of topics of the store, records that fall due, and work on claims."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from bespeak.errors import StoreError
from bespeak.runtime.concurrency import cancel_tasks, wait_at_most
from bespeak.state.store.commands.records import TOPIC, ClaimDue, NextDue, Record
from bespeak.state.store.store import Command, Conflict, Store, level_of

_logger = logging.getLogger(__name__)

_PAUSE: Final = 1.0  # seconds until a failed read of the store is retried
_READINGS: Final = 3  # readings within the age that a copy may have, so that one that fails does not make it stale


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
        self._load = take_in
        self._stale_after = stale_after
        self._tell_age = flip
        self.is_stale = False  # True if the copy is older than it may be
        self._timers: tuple[asyncio.TimerHandle, ...] = ()
        self._followed: Store | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._behind = False
        self._is_closed = False
        self._refreshing = asyncio.Lock()

    async def follow(self, store: Store) -> None:
        """Load the content of a store, now and whenever it changes. Raises StoreError if it cannot be read now."""
        if self._followed is not store:
            self._followed = store
            store.watch(self._topic, self._catch_up)
        await self.refresh()

    async def refresh(self) -> None:
        if self._followed is not None:
            async with self._refreshing:  # so that an older read never replaces a newer one
                began = asyncio.get_running_loop().time()
                await self._load(self._followed)
                self._note_reading(self._followed, began)

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
        if stale != self.is_stale and self._tell_age is not None:
            self.is_stale = stale
            self._tell_age(stale)

    async def close(self) -> None:
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        await cancel_tasks(self._catching_up)

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


DueHandler = Callable[[Sequence[Record]], Awaitable[None]]  # what it leaves unchanged is due again after the lease

_LEASE: Final = 30.0
_AT_ONCE: Final = 1000  # records of a kind claimed in one transaction, which holds up requests for a few milliseconds
_LONGEST_SLEEP: Final = 5.0  # seconds after which the store is asked again, in case a wake-up was lost
_DUE_PAUSE: Final = 1.0  # seconds after a failure


class DueLoop:
    """A task that claims due records and hands them to whoever knows their kind. No kind waits for another."""

    def __init__(self, store: Store, kinds: Mapping[str, DueHandler], *, lease: float = _LEASE) -> None:
        self._store = store
        self._kinds = dict(kinds)
        self._lease = lease
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Task[None]] = {}  # tasks that carry out what is due, by kind

    def start(self) -> None:
        """Start in the running loop; the store must be started."""
        if self._kinds and self._task is None:
            self._store.watch(TOPIC, self._woken.set)
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-due")

    async def stop(self) -> None:
        """Stop. Work that is not finished is due again after its lease."""
        await cancel_tasks(self._task, *self._busy.values())
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
                _logger.log(level_of(error), "could not read what is due; retrying in %g s: %s", _DUE_PAUSE, error)
                await asyncio.sleep(_DUE_PAUSE)
                continue
            for kind, seconds in due.items():
                if seconds <= 0:
                    self._begin(kind)
                else:
                    wait = min(wait, seconds)
            await wait_at_most(wait, self._woken)

    def _begin(self, kind: str) -> None:
        def end(_: asyncio.Task[None]) -> None:
            del self._busy[kind]
            self._woken.set()

        work = asyncio.get_running_loop().create_task(self._work(kind), name=f"bespeak-{kind}")
        self._busy[kind] = work
        work.add_done_callback(end)

    async def _work(self, kind: str) -> None:
        try:
            while await self._carry_out(kind) >= _AT_ONCE:
                pass
        except StoreError as error:
            _logger.log(level_of(error), "could not carry out what is due; retrying in %g s: %s", _DUE_PAUSE, error)
            await asyncio.sleep(_DUE_PAUSE)


class ClaimLoop(ABC):
    """A task that claims records and begins to work on each in a task of its own, some of each group at a time."""

    def __init__(self, store: Store, name: str, lease: float) -> None:
        self._store = store
        self._name = name  # what is claimed, for the log
        self._lease = lease  # the shortest one
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._working: defaultdict[str, dict[asyncio.Task[None], Record]] = defaultdict(dict)

    @abstractmethod
    async def claim(self) -> float:
        """Begin as much as may be worked on; return the seconds until there may be more to do."""

    @abstractmethod
    async def keep_leases(self) -> None: ...

    @abstractmethod
    def give_back(self, record: Record) -> Command:
        """Return the command by which any process may go on at once with what was begun."""

    def start(self) -> None:
        self._store.watch(TOPIC, self._woken.set)
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bespeak-{self._name}")

    async def stop(self) -> None:
        """Stop working. Any process may go on with what had begun."""
        await cancel_tasks(self._task)
        working = {task: record for tasks in self._working.values() for task, record in tasks.items()}
        await cancel_tasks(*working)
        for record in working.values():
            with suppress(StoreError):  # its lease ends
                await self._store.do(self.give_back(record))

    def held(self, group: str) -> tuple[tuple[str, int], ...]:
        """Return id and fence of each record of a group on which this process works."""
        return tuple((record.record_id, record.fence) for record in self._working[group].values())

    def begin(self, group: str, record: Record, work: Coroutine[Any, Any, None]) -> None:
        def finish(task: asyncio.Task[None]) -> None:
            del self._working[group][task]
            log_failure(task, record.record_id)
            self._woken.set()

        task = asyncio.get_running_loop().create_task(work, name=f"bespeak-{record.record_id}")
        self._working[group][task] = record
        task.add_done_callback(finish)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            self._woken.clear()
            try:
                wait = min(await self.claim(), _LONGEST_SLEEP)
                if loop.time() - renewed >= self._lease / 3:
                    renewed = loop.time()
                    await self.keep_leases()
            except StoreError as error:
                message = "could not claim %s; trying again in %g s: %s"
                _logger.log(level_of(error), message, self._name, _DUE_PAUSE, error)
                wait = _DUE_PAUSE
            await wait_at_most(max(min(wait, self._lease / 3), 0.0), self._woken)


def log_failure(task: asyncio.Task[None], record_id: str) -> None:
    """Log why a task that worked on a record has ended before its work, if it has failed."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        level = level_of(error) if isinstance(error, StoreError) else logging.ERROR
        shown = None if isinstance(error, StoreError) else error
        _logger.log(level, "%s goes on when its lease ends: %s", record_id, error, exc_info=shown)
