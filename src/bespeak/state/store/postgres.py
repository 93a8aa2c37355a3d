"""The store in a PostgreSQL database, shared by many machines: group commit, and LISTEN for changes by others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.state.store import postgres_connection as connections
from bespeak.state.store import postgres_transaction as transactions
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.commands.idempotency import ClaimKey
from bespeak.state.store.postgres_connection import Address, Availability, Connection, is_locked, is_outage
from bespeak.state.store.postgres_transaction import BatchEntry, LateTurn, Sealing, grouping_of
from bespeak.state.store.store import AGAIN, Command, Conflict, Seal, Sealer, Store, Then, Unit

_logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0  # seconds between polls: some proxies drop notifications


class Listener:
    """Reports changed topics; all of them after a lost connection, because notifications may be missing."""

    def __init__(self, address: Address, tell: Callable[[str], None], tell_all: Callable[[], None]) -> None:
        self._address = address
        self._tell = tell
        self._tell_all = tell_all
        self._lost = asyncio.Event()
        self._connection: Connection | None = None
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        connection = await self._connect()
        self._work = asyncio.get_running_loop().create_task(self._run(connection))

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        if self._connection is not None:
            await connections.close(self._connection)

    async def _run(self, connection: Connection) -> None:
        while True:
            try:
                if connection.is_closed():
                    connection = await self._connect()
                    self._tell_all()
                await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, giving up would leave everybody deaf
                if not isinstance(error, StoreUnavailableError):
                    _logger.error("%s", self._address.explain(error))
                await self._address.pause()

    async def _connect(self) -> Connection:
        connection = await self._address.connect()
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        try:
            await connection.add_listener(transactions.CHANNEL, lambda _, __, ___, topic: self._tell(topic))
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        return connection

    async def _listen(self, connection: Connection) -> None:
        """Listen until the connection is lost. A regular query detects a dead connection."""
        while not connection.is_closed():
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._lost.wait()
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1")
                except Exception:  # noqa: BLE001 - whatever it is, this connection brings no news any more
                    connection.terminate()
                    return
                self._tell_all()


GROUP: Final = 512  # limit of units in one transaction, so that the first does not wait for too many others
QUEUE: Final = 16_384  # limit of waiting units, above which the database is too slow for the load

# Rows are found by their keys. A plan made while a table was small would read all of it when it has grown.
BY_KEY: Final = {"enable_seqscan": "off"}
LANE_MILLISECONDS: Final = 500  # time for which a group waits for a locked row, before its units run by themselves


class _ApartError(Exception):
    """Raised for units whose later commands cannot join a group."""


class Task:
    __slots__ = ("entries", "rows", "shared", "unit")

    def __init__(self, unit: Unit, rows: frozenset[Hashable]) -> None:
        self.unit = unit
        self.rows = rows
        self.shared = shared_by(unit.commands)
        self.entries: list[BatchEntry] = []

    def enter(self, free: int) -> None:
        """Begin an attempt, in which all guards but those of the first `free` commands must succeed."""
        self.entries = [
            BatchEntry(command, required=place >= free and command.guards)
            for place, command in enumerate(self.unit.commands)
        ]

    @property
    def outcome(self) -> Sequence[Any] | Conflict:
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


class WriteLane:
    """One connection and the units waiting for it."""

    def __init__(
        self, address: Address, sealing: Sealing, settled: Callable[[Unit], None], alone: Callable[[Unit], None]
    ) -> None:
        self._address = address
        self._sealing = sealing
        self._settled = settled  # callback for each finished unit
        self._alone = alone  # callback for a unit that has to run by itself
        self._queue: deque[Task] = deque()
        self._connection: Connection | None = None
        self._work: asyncio.Task[None] | None = None

    def put(self, unit: Unit, rows: frozenset[Hashable]) -> None:
        if len(self._queue) >= QUEUE:
            raise StoreUnavailableError(f"{self._address.name} is too slow: {QUEUE} changes wait for it.")
        self._queue.append(Task(unit, rows))
        if self._work is None:
            # It begins after whatever else is ready in the loop has put its units too.
            self._work = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._work is not None:
            await asyncio.wait([self._work])
        if self._connection is not None:
            await connections.close(self._connection)

    async def _run(self) -> None:
        try:
            while self._queue:
                await self._carry_out(self._take())
        finally:
            self._work = None

    def _take(self) -> list[Task]:
        """Take the next group. A unit that changes a row of an earlier one, and those after it, wait for the next."""
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
            elif connections.may_be_retried(error):
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
                task.unit.topics.update(*(transactions.topics_of(entry.command) for entry in task.entries))
                self._settled(task.unit)

    async def _transact(self, group: list[Task]) -> None:
        """Run the units in one transaction. On return it has committed.

        After an exception nothing has happened, except after an outage: if the last statement was on its way, the units
        may have happened, or may happen yet.
        """
        follows = any(task.unit.then for task in group)
        connection = self._connection
        if connection is None or connection.is_closed():
            connection = self._connection = await self._address.connect(**BY_KEY, lock_timeout=str(LANE_MILLISECONDS))
        if not follows:
            # In one statement every guard must succeed, except that of a unit with one command.
            for task in group:
                task.enter(1 if len(task.unit.commands) == 1 else 0)
            with contextlib.suppress(asyncpg.DivisionByZeroError):
                async with LateTurn(self._sealing) as turn:
                    await self._send(connection, [entry for task in group for entry in task.entries], turn)
                return
        for task in group:
            task.enter(1)
        async with LateTurn(self._sealing) as turn:
            await self._run_in_steps(connection, group, turn)

    async def _run_in_steps(self, connection: Connection, group: list[Task], turn: LateTurn) -> None:
        """Run the first commands of all units, then the others of those that go on, then what follows from these."""
        await connection.execute("BEGIN")
        try:
            await self._send(connection, [task.entries[0] for task in group], turn)
            firsts = [(task, task.entries[0].result) for task in group]
            passed = [task for task, result in firsts if not isinstance(result, Conflict) and result is not AGAIN]
            rest = [entry for task in passed for entry in task.entries[1:]]
            if rest:
                await self._send(connection, rest, turn)
            more = _follow(passed)
            if more:
                await self._send(connection, more, turn)
            await connection.execute("COMMIT")
        except Exception as error:
            await transactions.undo(connection, error)
            raise

    async def _send(self, connection: Connection, entries: list[BatchEntry], turn: LateTurn) -> None:
        seals = [
            (entry, Seal(*seal(entry.command))) for entry in entries if (seal := grouping_of(type(entry.command)).seal)
        ]
        try:
            if seals:
                await turn.take()
                await self._sealing.learn(connection, (step.agent_id for _, step in seals))
                for entry, step in seals:
                    entry.item = self._sealing.seal(step)
            await transactions.Batch(entries).run(connection)
        except Exception as error:
            if is_outage(error):
                connection.terminate()
            raise


def _follow(tasks: Sequence[Task]) -> list[BatchEntry]:
    """Make the commands that follow from the results of units; each guard among them must succeed."""
    made: list[BatchEntry] = []
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
        entries = [BatchEntry(command, required=command.guards) for command in commands]
        task.entries += entries
        made += entries
    return made


_ATTEMPTS: Final = 5  # limit of attempts for a unit that collides with others


class PostgresStore(Store):
    """A store in PostgreSQL. `start` connects and reports problems. It works in the loop it was started in."""

    def __init__(self, dsn: str, *, durability: str = "full") -> None:
        super().__init__()
        self.sole = False
        self._address = Address(dsn, durability)
        self._durability = durability
        self._sealing = Sealing()
        self._readers = connections.ConnectionPool(self._address, connections.READERS, connections.READING)
        self._writers = connections.ConnectionPool(self._address, connections.WRITERS, BY_KEY)
        # A claim keeps others away, and is seen by them once it has committed. It promises nothing to anybody yet, so
        # nobody waits for the disk: one that is lost with the database is one that nobody holds any more.
        self._claims = WriteLane(Address(dsn, "process"), self._sealing, self._settle, self._run_alone)
        # What is sealed goes one after the other; the rest need not wait for it. What is one statement need not wait
        # for what takes several, which matters where the database is far away.
        self._plain = WriteLane(self._address, self._sealing, self._settle, self._run_alone)
        self._sealed = WriteLane(self._address, self._sealing, self._settle, self._run_alone)
        self._stepwise = WriteLane(self._address, self._sealing, self._settle, self._run_alone)
        self._listener = Listener(self._address, self._tell, lambda: self._tell(*self._watchers))
        self._alone: set[asyncio.Task[None]] = set()
        self._open = False
        self._availability = Availability(self._address.name)

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        self._check_open()
        unit = Unit(commands, then, asyncio.get_running_loop().create_future())
        rows = rows_of(commands)
        if rows is None:
            if len(self._alone) >= QUEUE:
                raise StoreUnavailableError(f"{self._address.name} is too slow: {QUEUE} changes wait for it.")
            self._run_alone(unit)
        else:
            self._lane_of(unit).put(unit, rows)
        outcome: Sequence[Any] | Conflict = await unit.future
        return outcome

    async def read(self, command: Command) -> Any:
        self._check_open()
        try:
            connection = await self._readers.take()
            try:
                found = await transactions.read(connection, command)
                self._availability.note_success()
                return found
            except BaseException as error:
                # Whoever goes away in the middle leaves a connection of which nobody knows where it stands.
                if is_outage(error) or not isinstance(error, Exception):
                    connection.terminate()
                raise
            finally:
                self._readers.give_back(connection)
        except Exception as error:
            raise self._explained(error) from error

    def attach(self, sealer: Sealer) -> None:
        self._sealing.sealer = sealer

    async def start(self) -> None:
        try:
            connection = await self._address.open()
            try:
                await connections.migrate(self._address.name, connection)
                if self._durability == "full" and (await connection.fetch("SHOW synchronous_commit"))[0][0] == "off":
                    self._address.settings["synchronous_commit"] = "on"
            finally:
                await connections.close(connection)
            await self._listener.start()
        except ConfigError:
            raise
        except StoreUnavailableError as error:
            raise ConfigError(str(error)) from error
        except Exception as error:
            raise ConfigError(self._address.explain(error)) from error
        self._open = True

    async def close(self) -> None:
        self._open = False
        for lane in (self._claims, self._plain, self._sealed, self._stepwise):
            await lane.close()
        while self._alone:
            await asyncio.wait(self._alone)
        await self._listener.close()
        await self._readers.close()
        await self._writers.close()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreUnavailableError(f"{self._address.name} is not open: the store was not started, or is closed.")

    def _lane_of(self, unit: Unit) -> WriteLane:
        if isinstance(unit.commands[0], ClaimKey):
            return self._claims
        if unit.then is not None:
            return self._stepwise
        return self._sealed if any(isinstance(command, AppendAudit) for command in unit.commands) else self._plain

    def _run_alone(self, unit: Unit) -> None:
        """Run a unit in its own task: the caller may be cancelled, the transaction is not."""
        task = asyncio.get_running_loop().create_task(self._carry_out(unit))
        self._alone.add(task)
        task.add_done_callback(self._alone.discard)

    async def _carry_out(self, unit: Unit) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                unit.outcome = await self._transact(unit)
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
                unit.outcome = error
                if connections.may_be_retried(error) and attempt < _ATTEMPTS:
                    continue
            break
        self._settle(unit)

    async def _transact(self, unit: Unit) -> Sequence[Any] | Conflict:
        connection = await self._writers.take()
        try:
            async with LateTurn(self._sealing) as turn:
                outcome = await transactions.transact(connection, unit, turn.seal)
                if isinstance(outcome, Conflict):
                    turn.discard()
                return outcome
        finally:
            self._writers.give_back(connection)

    def _settle(self, unit: Unit) -> None:
        """Settle a unit. Other processes hear of changes from the database; local watchers are notified first."""
        if isinstance(unit.outcome, Exception):
            unit.outcome = self._explained(unit.outcome)
        else:
            self._availability.note_success()
        if not isinstance(unit.outcome, Exception | Conflict):
            self._tell(*unit.topics)
        unit.settle()

    def _explained(self, error: Exception) -> Exception:
        """Return an exception for each waiter: one raised in two places would carry both tracebacks."""
        message = str(error) if isinstance(error, StoreError) else self._address.explain(error)
        if is_locked(error) or connections.is_collision(error):
            self._availability.note_locked(message)
            return StoreUnavailableError(message)
        if is_outage(error) or isinstance(error, StoreUnavailableError):
            self._availability.note_failure(message)
            return StoreUnavailableError(message)
        _logger.error("a unit of the store failed", exc_info=error)
        return StoreError(str(error) if isinstance(error, StoreError) else f"the store failed: {error}")
