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
from bespeak.store.sqlite_file import explain
from bespeak.store.unit import Unit, run_unit

_logger = logging.getLogger(__name__)

GROUP: Final = 512
"""Units in one transaction at most, so that the first of them does not wait for too many others."""


class Writer:
    """Takes units from a queue, in order, and answers each after its commit."""

    def __init__(self, path: str, connection: sqlite3.Connection, committed: Callable[[set[str]], None]) -> None:
        self._path = path
        self._connection = connection
        self._committed = committed
        self._queue: SimpleQueue[Unit | None] = SimpleQueue()
        self.sealer: Sealer | None = None
        self._thread = threading.Thread(target=self._run, name="bespeak-store", daemon=True)
        self._thread.start()

    def put(self, unit: Unit) -> None:
        """Have a unit carried out."""
        self._queue.put(unit)

    def stop(self) -> None:
        """Finish what is queued and let go of the file."""
        self._queue.put(None)
        self._thread.join()

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
        self._connection.close()

    def _carry_out(self, group: list[Unit]) -> None:
        try:
            self._transact(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            if len(group) > 1 and not _concerns_all(error):
                # One of them is at fault; the others must not suffer for it.
                for unit in group:
                    self._carry_out([unit])
                return
            reason = self._explain(error)
            for unit in group:
                unit.outcome = reason
        topics = {topic for unit in group if not isinstance(unit.outcome, Exception) for topic in unit.topics}
        _settle(group)
        if topics:
            self._committed(topics)

    def _transact(self, group: list[Unit]) -> None:
        """Run the units in one transaction; it has committed or nothing has happened when this ends."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for unit in group:
                if unit.needs_savepoint:
                    execute("SAVEPOINT unit")
                    unit.outcome = run_unit(unit, self._execute, self._seal)
                    if isinstance(unit.outcome, Conflict):
                        execute("ROLLBACK TO unit")
                    execute("RELEASE unit")
                else:
                    unit.outcome = run_unit(unit, self._execute, self._seal)
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            if self.sealer is not None:
                self.sealer.discard()
            raise
        if self.sealer is not None:
            self.sealer.keep()

    def _execute(self, statement: Statement) -> Rows:
        return self._connection.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

    def _seal(self, step: Seal) -> Sealed:
        sealer = self.sealer
        if sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        if not sealer.knows(step.agent_id):
            rows = self._connection.execute(HEAD, (step.agent_id,)).fetchall()
            sealer.learn(step.agent_id, rows[0][0] if rows else None)
        return sealer.seal(step.agent_id, step.payload)

    def _explain(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.IntegrityError | sqlite3.ProgrammingError
        ):
            message = explain(self._path, error)
            _logger.error("%s", message)
            return StoreUnavailableError(message)
        _logger.error("a unit of the store failed", exc_info=error)
        return error if isinstance(error, StoreError) else StoreError(f"the store failed: {error}")


def _concerns_all(error: Exception) -> bool:
    """Whether trying the units one by one would only meet the same fault again."""
    return isinstance(error, sqlite3.OperationalError)


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
