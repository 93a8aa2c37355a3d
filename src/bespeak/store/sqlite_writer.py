"""The one thread that writes to a SQLite file: units that wait together are committed together."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.store.command import Conflict, Rows, Seal, Sealed, Sealer, Statement
from bespeak.store.commands.audit import HEAD
from bespeak.store.dialect import sqlite_sql
from bespeak.store.sqlite_file import concerns_all, explain, is_outage
from bespeak.store.unit import Unit, run_unit

_logger = logging.getLogger(__name__)

GROUP: Final = 512
"""Units in one transaction at most, so that the first of them does not wait for too many others."""


class _SpoiledError(Exception):
    """A unit has to be undone that cannot be undone without its group."""


class Writer:
    """Takes units from a queue, in order, and answers each after its commit."""

    def __init__(self, path: str, connection: sqlite3.Connection, committed: Callable[[set[str]], None]) -> None:
        self._path = path
        self._connection = connection
        self._committed = committed
        self._queue: SimpleQueue[Unit | None] = SimpleQueue()
        self._ending = False
        self._gate = threading.Lock()
        self._fault = ""
        """Why nothing can be written now, so that the log says it once and not for each unit."""
        self._damage = ""
        """What is wrong with a part of the file; that does not pass."""
        self._sealed = False
        self.sealer: Sealer | None = None
        self._thread = threading.Thread(target=self._run, name="bespeak-store", daemon=True)
        self._thread.start()

    def put(self, unit: Unit) -> None:
        """Have a unit carried out; StoreUnavailableError once the end has begun."""
        with self._gate:
            if self._ending:
                raise StoreUnavailableError(f"The store {self._path} is closed.")
            self._queue.put(unit)

    def end(self) -> None:
        """Take no more units. What is queued is still carried out."""
        with self._gate:
            if not self._ending:
                self._ending = True
                self._queue.put(None)

    def finish(self) -> None:
        """Wait until what is queued has been carried out."""
        self.end()
        self._thread.join()

    def close(self) -> None:
        """Let go of the file. Whoever does so last puts the log into the file; readers cannot, so they go first."""
        self.finish()
        self._connection.close()

    def _run(self) -> None:
        ended = False
        while not ended:
            unit = self._queue.get()
            if unit is None:
                break
            group = [unit]
            while len(group) < GROUP:
                try:
                    unit = self._queue.get_nowait()
                except Empty:
                    break
                if unit is None:
                    ended = True
                    break
                group.append(unit)
            self._carry_out(group)

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
        else:
            if self._fault:
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
        """Run the units in one transaction; it has committed or nothing has happened when this ends."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for unit in group:
                if unit.needs_savepoint:
                    self._run_in_savepoint(unit, alone=len(group) == 1)
                else:
                    self._run_plainly(unit, alone=len(group) == 1)
            connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        if self.sealer is not None:
            self.sealer.keep()

    def _run_plainly(self, unit: Unit, *, alone: bool) -> None:
        """Without a savepoint: a conflict is expected before anything was written, if at all."""
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
        """Undo a unit that nothing less than the end of the transaction undoes."""
        if not alone:
            raise _SpoiledError
        self._undo()
        self._connection.execute("BEGIN IMMEDIATE")

    def _undo(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            if self.sealer is not None:
                self.sealer.discard()

    def _execute(self, statement: Statement) -> Rows:
        return self._connection.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

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
        """Say why. Each unit gets an exception of its own: one that is raised in two places has both their traces."""
        if isinstance(error, sqlite3.Error) and is_outage(error):
            message = explain(self._path, error)
            if message not in (self._fault, self._damage):
                _logger.error("%s", message)
            if concerns_all(error):
                self._fault = message
            else:
                self._damage = message
            for unit in group:
                unit.outcome = StoreUnavailableError(message)
            return
        _logger.error("a unit of the store failed", exc_info=error)
        for unit in group:
            unit.outcome = StoreError(str(error) if isinstance(error, StoreError) else f"the store failed: {error}")


def _settle(group: list[Unit]) -> None:
    """Tell who waits, in one call for each loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Unit]] = {}
    for unit in group:
        loops.setdefault(unit.future.get_loop(), []).append(unit)
    for loop, units in loops.items():
        try:
            loop.call_soon_threadsafe(_settle_all, units)
        except RuntimeError:  # the loop was closed; nobody waits any more
            _logger.debug("%d units of the store ended after their loop", len(units))


def _settle_all(units: list[Unit]) -> None:
    for unit in units:
        unit.settle()
