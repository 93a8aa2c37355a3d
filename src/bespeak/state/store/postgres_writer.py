"""Group commit on PostgreSQL: waiting units become one statement on a dedicated connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.command import Command, Conflict, Seal
from bespeak.state.store.grouping import AGAIN
from bespeak.state.store.postgres_address import Address, Connection, is_locked, is_outage, may_be_retried
from bespeak.state.store.postgres_batch import Batch, Entry, grouping_of, topics_of
from bespeak.state.store.postgres_pool import close
from bespeak.state.store.postgres_sealing import LateTurn, Sealing
from bespeak.state.store.postgres_unit import undo
from bespeak.state.store.unit import Unit

GROUP: Final = 512
"""Limit of units in one transaction, so that the first does not wait for too many others."""
QUEUE: Final = 16_384
"""Limit of waiting units; above it the database is too slow for the load, and new units are refused."""

# Rows are found by their keys. A plan made while a table was small would read all of it when it has grown.
BY_KEY: Final = {"enable_seqscan": "off"}
LANE_MILLISECONDS: Final = 500
"""Time for which a group waits for a locked row. Then its units run by themselves, and only one of them waits on."""


class _ApartError(Exception):
    """Raised for units whose later commands cannot join a group."""


class Task:
    """A unit as the writer sees it."""

    __slots__ = ("entries", "rows", "shared", "unit")

    def __init__(self, unit: Unit, rows: frozenset[Hashable]) -> None:
        self.unit = unit
        self.rows = rows
        self.shared = shared_by(unit.commands)
        self.entries: list[Entry] = []

    @property
    def outcome(self) -> Sequence[Any] | Conflict:
        """Result of the unit."""
        results = [entry.result for entry in self.entries]
        return results[0] if isinstance(results[0], Conflict) else results


def rows_of(commands: Sequence[Command], *, whole: bool = True) -> frozenset[Hashable] | None:
    """Return the rows that commands change, or None if they cannot join a group; `whole` if they are a whole unit.

    In a group the only dependency on a result is this: the commands of a unit run only if all its guards succeed.
    """
    rows: set[Hashable] = set()
    for place, command in enumerate(commands):
        grouping = command.grouping
        if grouping is None or (grouping.single and not (whole and len(commands) == 1)):
            return None
        if place and command.guards and not grouping.independent:
            return None
        if grouping.rows is not None:
            changed = grouping.rows(command)
            if not rows.isdisjoint(changed):
                return None
            rows.update(changed)
    return frozenset(rows) if commands else None


def shared_by(commands: Sequence[Command]) -> set[Hashable]:
    """Return the rows that commands which can join a group need to stay as they are."""
    groupings = ((command, grouping_of(type(command))) for command in commands)
    return {grouping.shared(command) for command, grouping in groupings if grouping.shared is not None}


class Lane:
    """One connection and the units waiting for it."""

    def __init__(
        self, address: Address, sealing: Sealing, settled: Callable[[Unit], None], alone: Callable[[Unit], None]
    ) -> None:
        self._address = address
        self._sealing = sealing
        self._settled = settled
        """Callback for each finished unit."""
        self._alone = alone
        """Callback for a unit that has to run by itself."""
        self._queue: deque[Task] = deque()
        self._connection: Connection | None = None
        self._work: asyncio.Task[None] | None = None

    def put(self, unit: Unit, rows: frozenset[Hashable]) -> None:
        """Queue a unit to run with others."""
        if len(self._queue) >= QUEUE:
            raise StoreUnavailableError(f"{self._address.name} is too slow: {QUEUE} changes wait for it.")
        self._queue.append(Task(unit, rows))
        if self._work is None:
            # It begins after whatever else is ready in the loop has put its units too.
            self._work = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Finish the queue and release the connection."""
        if self._work is not None:
            await asyncio.wait([self._work])
        if self._connection is not None:
            await close(self._connection)

    async def _run(self) -> None:
        try:
            while self._queue:
                await self._carry_out(self._take())
        finally:
            self._work = None

    def _take(self) -> list[Task]:
        """Take the next group. A unit that changes a row of an earlier one waits for the next group, and so do those
        after it.
        """
        group: list[Task] = []
        left: list[Task] = []
        rows: set[Hashable] = set()
        shared: set[Hashable] = set()
        while self._queue and len(group) < GROUP and len(left) < GROUP:
            task = self._queue.popleft()
            apart = rows.isdisjoint(task.rows) and rows.isdisjoint(task.shared) and shared.isdisjoint(task.rows)
            (group if apart else left).append(task)
            rows |= task.rows
            shared |= task.shared
        self._queue.extendleft(reversed(left))
        return group

    async def _carry_out(self, group: list[Task]) -> None:
        try:
            await self._transact(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            if is_outage(error) or isinstance(error, StoreUnavailableError):
                # Those that wait would only meet the same, one after the other.
                group += self._queue
                self._queue.clear()
            elif isinstance(error, (_ApartError, asyncpg.DivisionByZeroError)) or is_locked(error):
                for task in group:
                    self._alone(task.unit)
                return
            elif len(group) > 1:
                # One of them is at fault; the others must not suffer for it.
                middle = len(group) // 2
                await self._carry_out(group[:middle])
                await self._carry_out(group[middle:])
                return
            elif may_be_retried(error):
                self._alone(group[0].unit)
                return
            for task in group:
                task.unit.outcome = error
                self._settled(task.unit)
            return
        for task in group:
            if task.entries[0].result is AGAIN:
                self._alone(task.unit)
            else:
                task.unit.outcome = task.outcome
                task.unit.topics.update(*(topics_of(entry.command) for entry in task.entries))
                self._settled(task.unit)

    async def _transact(self, group: list[Task]) -> None:
        """Run the units in one transaction. On return it has committed.

        After an exception nothing has happened, except after an outage: if the last statement was on its way, the units
        may have happened, or may happen yet.
        """
        follows = any(task.unit.then for task in group)
        connection = await self._connected()
        if not follows:
            try:
                await self._run_at_once(connection, group)
            except asyncpg.DivisionByZeroError:
                pass
            else:
                return
        await self._run_in_steps(connection, group)

    async def _run_at_once(self, connection: Connection, group: list[Task]) -> None:
        """Run the units in one statement. Every guard must succeed, except that of a unit with one command."""
        for task in group:
            several = len(task.unit.commands) > 1
            task.entries = [Entry(command, required=several and command.guards) for command in task.unit.commands]
        async with LateTurn(self._sealing) as turn:
            await self._send(connection, [entry for task in group for entry in task.entries], turn)

    async def _run_in_steps(self, connection: Connection, group: list[Task]) -> None:
        """Run the first commands of all units, then the others of those that go on, then what follows from these."""
        for task in group:
            task.entries = [
                Entry(command, required=place > 0 and command.guards)
                for place, command in enumerate(task.unit.commands)
            ]
        async with LateTurn(self._sealing) as turn:
            await self._transact_in_steps(connection, group, turn)

    async def _transact_in_steps(self, connection: Connection, group: list[Task], turn: LateTurn) -> None:
        await connection.execute("BEGIN")
        try:
            await self._send(connection, [task.entries[0] for task in group], turn)
            passed = [
                task
                for task in group
                if not isinstance(task.entries[0].result, Conflict) and task.entries[0].result is not AGAIN
            ]
            rest = [entry for task in passed for entry in task.entries[1:]]
            if rest:
                await self._send(connection, rest, turn)
            more = _follow(passed)
            if more:
                await self._send(connection, more, turn)
            await connection.execute("COMMIT")
        except Exception as error:
            await undo(connection, error)
            raise

    async def _send(self, connection: Connection, entries: list[Entry], turn: LateTurn) -> None:
        seals = [
            (entry, Seal(*seal(entry.command))) for entry in entries if (seal := grouping_of(type(entry.command)).seal)
        ]
        try:
            if seals:
                await turn.take()
                await self._sealing.learn(connection, (step.agent_id for _, step in seals))
                for entry, step in seals:
                    entry.item = self._sealing.seal(step)
            batch = Batch(entries)
            sql, parameters = batch.statement()
            batch.answer((await connection.fetch(sql, *parameters))[0])
        except Exception as error:
            if is_outage(error):
                connection.terminate()
            raise

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._address.connect(**BY_KEY, lock_timeout=str(LANE_MILLISECONDS))
        return self._connection


def _follow(tasks: Sequence[Task]) -> list[Entry]:
    """Make the commands that follow from the results of units; each guard among them must succeed."""
    made: list[Entry] = []
    rows: set[Hashable] = set()
    shared: set[Hashable] = set()
    for task in tasks:
        commands = [] if task.unit.then is None else task.unit.then([entry.result for entry in task.entries])
        if not commands:
            continue
        changed = rows_of(commands, whole=False)
        if changed is None:
            raise _ApartError
        kept = shared_by(commands)
        if not (rows.isdisjoint(changed) and rows.isdisjoint(kept) and shared.isdisjoint(changed)):
            raise _ApartError
        rows |= changed
        shared |= kept
        entries = [Entry(command, required=command.guards) for command in commands]
        task.entries += entries
        made += entries
    return made
