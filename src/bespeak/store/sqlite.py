"""The store in one SQLite file, or in memory: one writer thread, readers on connections of their own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sqlite3
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.store.command import Command, Conflict, Rows, Seal, Sealed, Sealer, Statement
from bespeak.store.dialect import sqlite_sql
from bespeak.store.file_lock import FileLock
from bespeak.store.sqlite_file import connect, explain, open_writer
from bespeak.store.sqlite_writer import Writer
from bespeak.store.store import Store, Then, Watcher
from bespeak.store.unit import Unit, run_command

POLL_SECONDS: Final = 1.0
"""How often a process looks whether another one has changed the file."""


class SqliteStore(Store):
    """Opens at once, so that what is wrong with the file is known before a server starts."""

    def __init__(self, path: str, *, durability: str = "full", lock: FileLock | None = None) -> None:
        self._path = path
        self._lock = lock
        self.sole = lock is None or lock.exclusive
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._watchers: dict[str, list[Watcher]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._polling: asyncio.TimerHandle | None = None
        self._seen = 0
        try:
            self._writer = Writer(path, open_writer(path, durability), self._committed)
            self._local = connect(path, readonly=True)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def in_memory(cls) -> SqliteStore:
        """A store that ends with its process."""
        return cls(f"file:bespeak-{secrets.token_hex(8)}?mode=memory&cache=shared", durability="process")

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        future = asyncio.get_running_loop().create_future()
        self._writer.put(Unit(commands, then, future))
        outcome: Sequence[Any] | Conflict = await future
        return outcome

    async def read(self, command: Command) -> Any:
        return await asyncio.to_thread(self._read, command)

    def look(self, command: Command) -> Any:
        """Read in the loop's own thread: for look-ups by key, which take microseconds."""
        return self._run(self._local, command)

    def attach(self, sealer: Sealer) -> None:
        self._writer.sealer = sealer

    def watch(self, topic: str, watcher: Watcher) -> None:
        self._watchers.setdefault(topic, []).append(watcher)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._seen = self._data_version()
        self._poll()

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
        await asyncio.to_thread(self._writer.stop)
        self._local.close()
        with contextlib.suppress(Empty):
            while True:
                self._readers.get_nowait().close()
        if self._lock is not None:
            self._lock.release()

    def _read(self, command: Command) -> Any:
        try:
            connection = self._readers.get_nowait()
        except Empty:
            connection = connect(self._path, readonly=True)
        try:
            return self._run(connection, command)
        finally:
            self._readers.put(connection)

    def _run(self, connection: sqlite3.Connection, command: Command) -> Any:
        def execute(statement: Statement) -> Rows:
            return connection.execute(sqlite_sql(statement.sql), statement.parameters).fetchall()

        try:
            return run_command(command, set(), execute, _sealing_is_writing)
        except sqlite3.DatabaseError as error:
            raise StoreUnavailableError(explain(self._path, error)) from error

    def _committed(self, topics: set[str]) -> None:
        """Called by the writer's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._tell, topics)

    def _tell(self, topics: set[str]) -> None:
        for topic in topics:
            for watcher in self._watchers.get(topic, ()):
                watcher()

    def _poll(self) -> None:
        """Look whether another connection has written; which topic that was is not known, so all are told."""
        assert self._loop is not None
        if not self.sole or self._lock is not None:
            version = self._data_version()
            if version != self._seen:
                self._seen = version
                self._tell(set(self._watchers))
            self._polling = self._loop.call_later(POLL_SECONDS, self._poll)

    def _data_version(self) -> int:
        try:
            version: int = self._local.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.DatabaseError:
            return self._seen
        return version


def _sealing_is_writing(_: Seal) -> Sealed:
    raise StoreError("nothing is sealed while reading")
