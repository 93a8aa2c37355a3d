"""The store in one SQLite file or in memory: one writer thread, and separate connections for readers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sqlite3
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.state.store.command import Command, Conflict, Rows, Seal, Sealed, Sealer, Statement, Steps
from bespeak.state.store.dialect import sqlite_sql
from bespeak.state.store.file_lock import FileLock
from bespeak.state.store.sqlite_file import connect, explain, is_outage, open_writer
from bespeak.state.store.sqlite_writer import Writer
from bespeak.state.store.store import Store, Then, Watcher
from bespeak.state.store.unit import Unit, run_command

_logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
"""Seconds between checks for changes by other processes."""


class _SeeOthers(Command, frozen=True):
    """Read a number that changes when another connection has changed the file."""

    def steps(self) -> Steps:
        """Return the number."""
        return (yield Statement("PRAGMA data_version"))[0][0]


class SqliteStore(Store):
    """A store in an SQLite file. It opens at once, so that problems with the file are known before a server starts."""

    def __init__(self, path: str, *, durability: str = "full", lock: FileLock | None = None) -> None:
        self._path = path
        self._lock = lock
        self.sole = lock is None or lock.exclusive
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._reported = ""
        """Last read error, so that the log reports it once and not for each request."""
        self._watchers: dict[str, list[Watcher]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poller: asyncio.Task[None] | None = None
        self._seen: Any = None
        """Result of the last `_SeeOthers`; None if it failed."""
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

    def watch(self, topic: str, watcher: Watcher) -> None:
        self._watchers.setdefault(topic, []).append(watcher)

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
                self._loop.call_soon_threadsafe(self._tell, topics)

    def _tell(self, topics: set[str]) -> None:
        for topic in topics:
            for watcher in self._watchers.get(topic, ()):
                watcher()

    async def _poll(self) -> None:
        """Check whether another process has written. The topic is unknown, so all watchers are notified.

        The check uses the writer's connection, which does not count its own changes.
        """
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(StoreError):  # those who ask for more than this are told
                found = await self.do(_SeeOthers())
                if found != self._seen:
                    self._tell(set(self._watchers))
                self._seen = found


def read_with(connection: sqlite3.Connection, command: Command) -> Any:
    """Return the result of a read-only command."""

    def execute(statement: Statement) -> Rows:
        return connection.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

    return run_command(command, set(), execute, _sealing_is_writing)


def _sealing_is_writing(_: Seal) -> Sealed:
    raise StoreError("a read cannot seal records")
