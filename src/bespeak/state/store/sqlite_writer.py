"""The one writer of an SQLite file: waiting units are committed together, and a thread waits for the disk.

The statements of a group run in the loop's own thread, where they take microseconds; handing each of them to another
thread would cost several times as much. The commit waits for the disk, so the thread does that. Unusual cases - another
process holds the file, a unit fails - are the thread's from the start.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, NamedTuple

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.command import Conflict, Rows, Seal, Sealed, Sealer, Statement
from bespeak.state.store.commands.audit import HEAD
from bespeak.state.store.dialect import sqlite_count, sqlite_sql
from bespeak.state.store.sqlite_file import concerns_all, explain, is_outage
from bespeak.state.store.unit import Unit, run_unit

_logger = logging.getLogger(__name__)

GROUP: Final = 512
"""Limit of units in one transaction, so that the first does not wait for too many others."""


class _SpoiledError(Exception):
    """Raised when a unit cannot be undone without its group."""


class _Work(NamedTuple):
    """A job for the thread."""

    group: list[Unit]
    begun: bool
    """True if the statements have run and only the commit is missing."""


class Writer:
    """Runs units in order and settles each after its commit. One thread at a time uses the connection."""

    def __init__(self, path: str, connection: sqlite3.Connection, committed: Callable[[set[str]], None]) -> None:
        self._path = path
        self._connection = connection
        self._cursor = connection.cursor()
        self._committed = committed
        self._gate = threading.Lock()
        self._waiting: deque[Unit] = deque()
        self._busy = False
        """True while a group runs or is scheduled; units that arrive meanwhile wait for the next one."""
        self._chosen: asyncio.AbstractEventLoop | None = None
        """Loop that runs the next group."""
        self._ending = False
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._fault = ""
        """Current write error, so that the log reports it once and not for each unit."""
        self._changes = 0
        """Change counter at the time of the error: a unit that changes nothing does not prove recovery."""
        self._damage = ""
        """Permanent damage to a part of the file."""
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
        """Wait until the queue is empty."""
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
                self._do(work)
            except Exception as error:  # noqa: BLE001 - nobody may wait for a thread that has ended
                self._fail(work.group, error)
                _settle(work.group)
            self._go_on(work.group[0].future.get_loop())

    def _do(self, work: _Work) -> None:
        if not work.begun or not self._commit():
            self._connection.execute(f"PRAGMA busy_timeout = {self._patience}")
            self._carry_out(work.group)
            self._connection.execute("PRAGMA busy_timeout = 0")
        else:
            self._conclude(work.group)

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
        """Settle a committed group."""
        if self._fault and self._connection.total_changes != self._changes:
            _logger.warning("The store %s works again.", self._path)
            self._fault = ""
        topics: set[str] = set()
        for unit in group:
            if unit.topics and not isinstance(unit.outcome, Exception | Conflict):
                topics |= unit.topics
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
        alone = len(group) == 1
        for unit in group:
            if unit.needs_savepoint:
                self._run_in_savepoint(unit, alone=alone)
            else:
                self._run_plainly(unit, alone=alone)

    def _run_plainly(self, unit: Unit, *, alone: bool) -> None:
        """Run a unit without a savepoint: a conflict is expected only before anything is written."""
        before = self._connection.total_changes
        self._sealed = False
        unit.outcome = run_unit(unit, self._execute, self._seal)
        if isinstance(unit.outcome, Conflict) and (self._sealed or self._connection.total_changes != before):
            self._take_back(alone=alone)

    def _run_in_savepoint(self, unit: Unit, *, alone: bool) -> None:
        execute = self._connection.execute
        self._sealed = False
        execute("SAVEPOINT unit")
        unit.outcome = run_unit(unit, self._execute, self._seal)
        if isinstance(unit.outcome, Conflict):
            if self._sealed:
                # Those behind it in the chain would refer to a record that is not there.
                self._take_back(alone=alone)
                return
            execute("ROLLBACK TO unit")
        execute("RELEASE unit")

    def _take_back(self, *, alone: bool) -> None:
        """Undo a unit by rolling back the whole transaction."""
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
    """Settle futures with one call per loop."""
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
