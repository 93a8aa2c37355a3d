"""The store in one SQLite file or in memory: one writer thread that groups units, and connections for readers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.state.store import store as units
from bespeak.state.store.commands.audit import HEAD
from bespeak.state.store.sql import sqlite_count, sqlite_sql
from bespeak.state.store.sqlite_file import FileLock, concerns_all, connect, explain, is_outage, open_writer
from bespeak.state.store.store import Command, Conflict, Rows, Seal, Sealed, Sealer, Statement, Store, Then, Unit

_logger = logging.getLogger(__name__)

GROUP: Final = 512  # limit of units in one transaction, so that the first does not wait for too many others


class _SpoiledError(Exception):
    """Raised when a unit cannot be undone without its group."""


class _Work(NamedTuple):
    group: list[Unit]
    begun: bool  # True if the statements have run and only the commit is missing


class Writer:
    """Runs units in order and settles each after its commit. One thread at a time uses the connection."""

    def __init__(self, path: str, connection: sqlite3.Connection, committed: Callable[[set[str]], None]) -> None:
        self._path = path
        self._connection = connection
        self._cursor = connection.cursor()
        self._committed = committed
        self._gate = threading.Lock()
        self._waiting: deque[Unit] = deque()
        self._busy = False  # True while a group runs or is scheduled; units that arrive meanwhile wait for the next one
        self._chosen: asyncio.AbstractEventLoop | None = None  # loop that runs the next group
        self._ending = False
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._fault = ""  # current write error, so that the log reports it once and not for each unit
        self._changes = 0  # counter at the time of the error: a unit that changes nothing proves nothing
        self._damage = ""  # permanent damage to a part of the file
        self._sealed = False
        self.sealer: Sealer | None = None
        # A loop must not wait for other processes; the thread does.
        self._patience: int = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute("PRAGMA busy_timeout = 0")
        self._thread = threading.Thread(target=self._run, name="bespeak-store", daemon=True)
        self._thread.start()

    def put(self, unit: Unit) -> None:
        """Queue a unit; raise StoreUnavailableError once the writer is closing."""
        with self._gate:
            if self._ending:
                raise StoreUnavailableError(f"The store {self._path} is closed.")
            self._waiting.append(unit)
            if self._busy and not (self._chosen is not None and self._chosen.is_closed()):
                return
            self._busy = True
            self._chosen = unit.future.get_loop()
        # At the end of this turn of the loop, so that other requests of the same turn are in the same group.
        self._chosen.call_soon(self._turn)

    def end(self) -> None:
        """Accept no more units. Queued units still run, whether or not their loop does."""
        with self._gate:
            if self._ending:
                return
            self._ending = True
            if self._waiting:
                self._queue.put(_Work(list(self._waiting), begun=False))
                self._waiting.clear()
            self._queue.put(None)

    def finish(self) -> None:
        self.end()
        self._thread.join()

    def close(self) -> None:
        """Close the file. The last connection to close checkpoints the WAL; readers cannot, so they close first."""
        self.finish()
        self._connection.close()

    def _turn(self) -> None:
        """Run the statements of the waiting units and leave the commit to the thread."""
        with self._gate:
            self._chosen = None
            group = self._next_group()
            if not group:
                return
        begun = True
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._run_group(group)
        except Exception:  # noqa: BLE001 - the thread does it again, and says what is wrong
            begun = False
            self._undo()
        self._queue.put(_Work(group, begun))

    def _next_group(self) -> list[Unit]:
        """Take the waiting units up to the limit; empty if there are none, and the writer is then idle."""
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), GROUP))]
        self._busy = bool(group)
        return group

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                if not work.begun or not self._commit():
                    self._connection.execute(f"PRAGMA busy_timeout = {self._patience}")
                    self._carry_out(work.group)
                    self._connection.execute("PRAGMA busy_timeout = 0")
                else:
                    self._conclude(work.group)
            except Exception as error:  # noqa: BLE001 - nobody may wait for a thread that has ended
                self._fail(work.group, error)
                _settle(work.group)
            self._go_on(work.group[0].future.get_loop())

    def _commit(self) -> bool:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            return False
        if self.sealer is not None:
            self.sealer.keep()
        return True

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule the next group in the loop, or run it here if that loop has ended."""
        with self._gate:
            if not self._waiting:
                self._busy = False
                return
            if self._ending:
                return
            self._chosen = loop
        try:
            loop.call_soon_threadsafe(self._turn)
        except RuntimeError:
            with self._gate:
                self._chosen = None
                group = self._next_group()
            if group:
                self._queue.put(_Work(group, begun=False))

    def _carry_out(self, group: list[Unit]) -> None:
        try:
            self._transact(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            if len(group) > 1 and not concerns_all(error):
                # One of them is at fault; the others must not suffer for it.
                for unit in group:
                    self._carry_out([unit])
                return
            self._fail(group, error)
            _settle(group)
        else:
            self._conclude(group)

    def _conclude(self, group: list[Unit]) -> None:
        if self._fault and self._connection.total_changes != self._changes:
            _logger.warning("The store %s works again.", self._path)
            self._fault = ""
        done = (unit.topics for unit in group if not isinstance(unit.outcome, Exception | Conflict))
        topics = set[str]().union(*done)
        _settle(group)
        if topics:
            self._committed(topics)

    def _transact(self, group: list[Unit]) -> None:
        """Run the units in one transaction. On return it has committed; after an exception nothing has happened."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._run_group(group)
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        if self.sealer is not None:
            self.sealer.keep()

    def _run_group(self, group: list[Unit]) -> None:
        for unit in group:
            run = self._run_in_savepoint if unit.needs_savepoint else self._run_plainly
            run(unit, alone=len(group) == 1)

    def _run_plainly(self, unit: Unit, *, alone: bool) -> None:
        """Run a unit without a savepoint: a conflict is expected only before anything is written."""
        before = self._connection.total_changes
        self._sealed = False
        unit.outcome = units.run_unit(unit, self._execute, self._seal)
        if isinstance(unit.outcome, Conflict) and (self._sealed or self._connection.total_changes != before):
            self._take_back(alone=alone)

    def _run_in_savepoint(self, unit: Unit, *, alone: bool) -> None:
        execute = self._connection.execute
        self._sealed = False
        execute("SAVEPOINT unit")
        unit.outcome = units.run_unit(unit, self._execute, self._seal)
        if isinstance(unit.outcome, Conflict):
            if self._sealed:
                # Those behind it in the chain would refer to a record that is not there.
                self._take_back(alone=alone)
                return
            execute("ROLLBACK TO unit")
        execute("RELEASE unit")

    def _take_back(self, *, alone: bool) -> None:
        if not alone:
            raise _SpoiledError
        self._undo()
        self._connection.execute("BEGIN IMMEDIATE")

    def _undo(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # What led here is what those who wait are told; the next BEGIN says whether the connection is of use.
            _logger.error("The store %s could not roll back a transaction: %s", self._path, error)
        finally:
            if self.sealer is not None:
                self.sealer.discard()

    def _execute(self, statement: Statement) -> Rows:
        change = sqlite_count(statement.sql)
        if change is not None:
            return [(1,)] * self._cursor.execute(change, statement.parameters).rowcount
        return self._cursor.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

    def _seal(self, step: Seal) -> Sealed:
        sealer = self.sealer
        if sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        if not sealer.knows(step.agent_id):
            rows = self._connection.execute(HEAD, (step.agent_id,)).fetchall()
            sealer.learn(step.agent_id, rows[0][0] if rows else None)
        self._sealed = True
        return sealer.seal(step.agent_id, step.payload)

    def _fail(self, group: list[Unit], error: Exception) -> None:
        """Fail the units. Each gets its own exception: one raised in two places would carry both tracebacks."""
        if isinstance(error, sqlite3.Error) and is_outage(error):
            message = explain(self._path, error)
            if message not in (self._fault, self._damage):
                _logger.error("%s", message)
            if concerns_all(error):
                self._fault, self._changes = message, self._connection.total_changes
            else:
                self._damage = message
            for unit in group:
                unit.outcome = StoreUnavailableError(message)
            return
        _logger.error("a unit of the store failed", exc_info=error)
        for unit in group:
            unit.outcome = StoreError(str(error) if isinstance(error, StoreError) else f"the store failed: {error}")


def _settle(group: list[Unit]) -> None:
    loops = {unit.future.get_loop() for unit in group}
    for loop in loops:
        units = group if len(loops) == 1 else [unit for unit in group if unit.future.get_loop() is loop]
        try:
            loop.call_soon_threadsafe(_settle_all, units)
        except RuntimeError:  # the loop was closed; nobody waits any more
            _logger.debug("%d units of the store ended after their loop", len(units))


def _settle_all(units: list[Unit]) -> None:
    for unit in units:
        unit.settle()


POLL_SECONDS: Final = 1.0  # seconds between checks for changes by other processes


class _SeeOthers(Command, frozen=True):
    """Read a number that changes when another connection has changed the file."""

    def steps(self) -> units.Result[int]:
        return units.read_number("PRAGMA data_version")


class SqliteStore(Store):
    """A store in an SQLite file. It opens at once, so that problems with the file are known before a server starts."""

    def __init__(self, path: str, *, durability: str = "full", lock: FileLock | None = None) -> None:
        super().__init__()
        self._path = path
        self._lock = lock
        self.sole = lock is None or lock.exclusive
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._reported = ""  # last read error, so that the log reports it once and not for each request
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poller: asyncio.Task[None] | None = None
        self._seen: Any = None  # result of the last `_SeeOthers`; None if it failed
        self._closed = False
        try:
            connection = open_writer(path, durability)
            try:
                self._local = connect(path, readonly=True)
            except sqlite3.Error as error:
                connection.close()
                raise ConfigError(explain(path, error)) from error
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        self._writer = Writer(path, connection, self._committed)

    @classmethod
    def in_memory(cls) -> SqliteStore:
        """Create a store that ends with its process."""
        store = cls(f"file:bespeak-{secrets.token_hex(8)}?mode=memory&cache=shared", durability="process")
        store.lasting = False
        return store

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        future = asyncio.get_running_loop().create_future()
        self._writer.put(Unit(commands, then, future))
        outcome: Sequence[Any] | Conflict = await future
        return outcome

    async def read(self, command: Command) -> Any:
        return await asyncio.to_thread(self._read, command)

    def look(self, command: Command) -> Any:
        """Read in the loop's own thread, for look-ups by key that take microseconds and one statement."""
        try:
            return read_with(self._local, command)
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def attach(self, sealer: Sealer) -> None:
        self._writer.sealer = sealer

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self.sole or self._lock is not None:
            # Before anybody reads: what others change from now on is noticed.
            with contextlib.suppress(StoreError):
                self._seen = await self.do(_SeeOthers())
            self._poller = self._loop.create_task(self._poll())

    async def close(self) -> None:
        self._closed = True
        self._writer.end()
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        await asyncio.to_thread(self._writer.finish)
        self._local.close()
        with contextlib.suppress(Empty):
            while True:
                self._readers.get_nowait().close()
        await asyncio.to_thread(self._writer.close)
        if self._lock is not None:
            self._lock.release()

    def _read(self, command: Command) -> Any:
        self._check_open()
        connection = None
        try:
            try:
                connection = self._readers.get_nowait()
            except Empty:
                connection = connect(self._path, readonly=True)
            # One transaction, so that all statements of the command see the same state.
            connection.execute("BEGIN")
            try:
                return read_with(connection, command)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._fault(error) from error
        finally:
            if connection is not None and self._closed:
                connection.close()
            elif connection is not None:
                self._readers.put(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError(f"The store {self._path} is closed.")

    def _fault(self, error: sqlite3.Error) -> StoreError:
        if not is_outage(error):
            return StoreError(f"the store failed: {error}")
        message = explain(self._path, error)
        if message != self._reported:
            self._reported = message
            _logger.error("%s", message)
        return StoreUnavailableError(message)

    def _committed(self, topics: set[str]) -> None:
        """Notify watchers. Runs in the writer's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._tell, *topics)

    async def _poll(self) -> None:
        """Check by the writer's connection whether another process has written; all watchers are told, of any topic."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(StoreError):  # those who ask for more than this are told
                found = await self.do(_SeeOthers())
                if found != self._seen:
                    self._tell(*self._watchers)
                self._seen = found


def read_with(connection: sqlite3.Connection, command: Command) -> Any:
    """Return the result of a read-only command."""

    def execute(statement: Statement) -> Rows:
        return connection.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

    return units.run_command(command, set(), execute, _sealing_is_writing)


def _sealing_is_writing(_: Seal) -> Sealed:
    raise StoreError("a read cannot seal records")
