"""Connections to a PostgreSQL database: its address, the pool, explained errors, and migration of its tables."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]

from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.state.store.sql import CURRENT, POSTGRES_WORDS, check_version, statements

_logger = logging.getLogger(__name__)

SCHEMA: Final = "bespeak"  # schema of all tables, so that the database may hold other things
CONNECT_SECONDS: Final = 3.0
COMMAND_SECONDS: Final = 5.0  # timeout of a statement in seconds
LOCK_MILLISECONDS: Final = 4000  # time for which a statement waits for a row that another transaction has locked
_IDLE_MILLISECONDS: Final = 3000
"""Time after which PostgreSQL ends a transaction whose process has fallen silent: it lost its power or its link. Less
than others wait for its rows.
"""
_KEEPALIVE: Final = {"idle": 5, "interval": 2, "count": 3}
"""Seconds without traffic before a peer is probed, seconds between probes, and how many it may miss."""
_SILENT_MILLISECONDS: Final = 10_000  # time after which a peer that confirms nothing is given up
_SOCKET_OPTIONS: Final = {
    "TCP_KEEPIDLE": _KEEPALIVE["idle"],
    "TCP_KEEPINTVL": _KEEPALIVE["interval"],
    "TCP_KEEPCNT": _KEEPALIVE["count"],
    "TCP_USER_TIMEOUT": _SILENT_MILLISECONDS,
}
"""The same for the client's end, where the system has them."""
_CALM: Final = 2.0  # seconds without a failure after which a database works again
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0

_HOST: Final = re.compile(r"([\w.%-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


class Connection(Protocol):
    """The part of asyncpg's connection that is used."""

    async def fetch(self, query: str, *args: Any, timeout: float = ...) -> Sequence[Sequence[Any]]: ...  # noqa: ASYNC109
    async def execute(self, query: str, *args: Any, timeout: float = ...) -> str: ...  # noqa: ASYNC109
    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    def is_closed(self) -> bool: ...
    def is_in_transaction(self) -> bool: ...
    def get_settings(self) -> Any: ...
    def get_server_version(self) -> Any: ...
    def terminate(self) -> None: ...
    async def close(self, *, timeout: float = ...) -> None: ...  # noqa: ASYNC109


class Availability:
    """Logs once that a database fails, and once that it works: when nothing has failed for some seconds."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._failed_at: float | None = None
        self._locked_at: float | None = None

    def note_failure(self, message: str) -> None:
        """Report a failure, unless one was reported since the database last worked."""
        _logger.log(logging.INFO if self._failed_at is not None else logging.ERROR, "%s", message)
        self._failed_at = self._clock()

    def note_locked(self, message: str) -> None:
        """Report a row that stayed locked, unless one was reported lately. The database itself works."""
        now = self._clock()
        lately = self._locked_at is not None and now < self._locked_at + 60.0
        _logger.log(logging.INFO if lately else logging.WARNING, "%s", message)
        self._locked_at = now

    def note_success(self) -> None:
        """Report that the database works again, if it had failed."""
        if self._failed_at is not None and self._clock() >= self._failed_at + _CALM:
            self._failed_at = None
            _logger.warning("%s works again.", self._name)


class Address:
    """Opens connections, with growing pauses between attempts while the database is unreachable."""

    def __init__(self, dsn: str, durability: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._dsn = dsn
        self._clock = clock
        self.name = _name(dsn)
        self.settings = {
            "application_name": "bespeak",
            "search_path": SCHEMA,
            "jit": "off",
            "lock_timeout": str(LOCK_MILLISECONDS),
            "idle_in_transaction_session_timeout": str(_IDLE_MILLISECONDS),
            **{f"tcp_keepalives_{name}": str(value) for name, value in _KEEPALIVE.items()},
            "tcp_user_timeout": str(_SILENT_MILLISECONDS),
        }
        if durability == "process":
            self.settings["synchronous_commit"] = "off"
        self._pause = 0.0
        self._next = 0.0
        self._why = ""

    async def connect(self, **settings: str) -> Connection:
        """Open a connection; raise StoreUnavailableError, at once during the pause after a failure."""
        if self.wait > 0:
            raise StoreUnavailableError(self._why)
        try:
            connection = await self.open(**settings)
        except Exception as error:
            if not is_outage(error):
                raise
            self._why = self.explain(error)
            if self.wait == 0:  # else another attempt has failed at the same time, and one failure is not two
                self._pause = min(max(_SHORTEST_PAUSE, 2 * self._pause), _LONGEST_PAUSE)
                self._next = self._clock() + self._pause
            raise StoreUnavailableError(self._why) from error
        self._pause = self._next = 0.0
        return connection

    async def open(self, **settings: str) -> Connection:
        """Open a connection; driver exceptions pass through."""
        connection: Connection = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings=self.settings | settings,
        )
        _keep_alive(connection)
        return connection

    @property
    def wait(self) -> float:
        return max(0.0, self._next - self._clock())

    async def pause(self) -> None:
        await asyncio.sleep(max(_SHORTEST_PAUSE, self.wait))

    def explain(self, error: BaseException) -> str:
        """Explain an error to the operator, without the password."""
        told = next(text for kind, text in _EXPLAINED.items() if isinstance(error, kind))
        reason = error.strerror or error if isinstance(error, OSError) else error
        return f"{self.name} {told.format(error=reason)}"


_EXPLAINED: Final[Mapping[type[BaseException], str]] = {
    asyncpg.InvalidAuthorizationSpecificationError: "refused the login ({error}). Check the user and the password in "
    "the address of the store, and the server's pg_hba.conf.",
    asyncpg.InvalidCatalogNameError: "does not exist ({error}). Create the database, or name another one with --store.",
    asyncpg.InsufficientPrivilegeError: "does not allow it ({error}). Grant the user what it needs on the schema "
    f"{SCHEMA}.",
    asyncpg.TooManyConnectionsError: "has no connection left ({error}). Raise max_connections, or run fewer processes.",
    asyncpg.LockNotAvailableError: "works, but another transaction kept a row locked for "
    f"{LOCK_MILLISECONDS / 1000:g} s. Look for transactions that do not end in pg_stat_activity.",
    TimeoutError: "does not answer in time.",
    OSError: "cannot be reached ({error}). Check that it runs and accepts connections.",
    BaseException: "cannot be used: {error}",
}


def is_outage(error: BaseException) -> bool:
    """Return True if an error means that the database is unreachable, not that a statement failed."""
    # asyncpg has two classes named DataError, and exports the other one.
    if isinstance(error, asyncpg.exceptions._base.DataError | asyncpg.exceptions._base.ClientConfigurationError):
        return False
    return isinstance(
        error,
        OSError
        | TimeoutError
        | asyncpg.InterfaceError
        | asyncpg.InternalClientError
        | asyncpg.PostgresConnectionError
        | asyncpg.OperatorInterventionError
        | asyncpg.InsufficientResourcesError
        | asyncpg.PostgresSystemError
        | asyncpg.InternalServerError
        | asyncpg.InvalidAuthorizationSpecificationError
        | asyncpg.InvalidCatalogNameError
        | asyncpg.InsufficientPrivilegeError
        | asyncpg.IdleInTransactionSessionTimeoutError
        | asyncpg.ReadOnlySQLTransactionError,
    )


def is_collision(error: BaseException) -> bool:
    """Return True if other transactions or migrations caused the error, so that a retry makes sense."""
    return isinstance(
        error, asyncpg.DeadlockDetectedError | asyncpg.SerializationError | asyncpg.InvalidCachedStatementError
    )


def may_be_retried(error: BaseException) -> bool:
    """Return True if the same unit may succeed at once: commands ask first, so another process has added their row."""
    return is_collision(error) or isinstance(error, asyncpg.UniqueViolationError)


def is_locked(error: BaseException) -> bool:
    """Return True if a statement gave up waiting for a row. Whatever does not need that row works."""
    return isinstance(error, asyncpg.LockNotAvailableError)


def _keep_alive(connection: Any) -> None:
    """Let the system notice a database that vanished while nothing was sent to it."""
    # The driver has an option for neither, nor a public way to its socket.
    end = connection._transport.get_extra_info("socket")
    if end is None or end.family == getattr(socket, "AF_UNIX", None):
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _name(dsn: str) -> str:
    """Return the name of the database without credentials; what might be part of a password is refused."""
    hosts, database, is_clear = "", "", False
    with contextlib.suppress(ValueError):
        parts = urlsplit(dsn)
        hosts, database = parts.netloc.rpartition("@")[2] or "localhost", parts.path.strip("/")
        astray = "@" not in parts.netloc and "@" in f"{parts.path}{parts.query}{parts.fragment}"
        is_clear = not astray and all(_HOST.fullmatch(host) for host in hosts.split(","))
    if not is_clear:
        raise ConfigError(
            "The address of the database cannot be read. It has the form postgresql://user:password@host:port/database;"
            " in the password write %40 for @, %3A for :, %2F for /, %3F for ? and %23 for #."
        )
    return f"The PostgreSQL database {database} at {hosts}" if database else f"The PostgreSQL at {hosts}"


READERS: Final = 6
WRITERS: Final = 6
"""Limits of connections; PostgreSQL allows 100 in all by default. Reads never wait for transactions, which may wait for
rows.
"""
READING: Final = {"default_transaction_read_only": "on"}  # a read cannot write by mistake


_LONGEST_WAIT: Final = 4 * COMMAND_SECONDS
_SHARE: Final = 0.2  # share of the latest use of a connection in the time that one is expected to take


class ConnectionPool:
    """Connections that are opened on demand and kept for reuse.

    Whoever waits for one is refused after `COMMAND_SECONDS` more than those in front of it are expected to take. Where
    the database is far away they take longer, although nothing is wrong.
    """

    def __init__(self, address: Address, size: int, settings: Mapping[str, str]) -> None:
        self._address = address
        self._size = size
        self._settings = settings
        self._free: list[Connection] = []
        self._taken_at: dict[Connection, float] = {}
        self._typical = 0.0  # seconds for which a connection is expected to be in use
        self._waiting = 0
        self._places = asyncio.Semaphore(size)

    async def take(self) -> Connection:
        """Return an open connection; raise StoreUnavailableError if none is available in time."""
        ahead = self._typical * self._waiting / self._size
        self._waiting += 1
        try:
            async with asyncio.timeout(min(COMMAND_SECONDS + ahead, _LONGEST_WAIT)):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailableError(
                f"{self._address.name} is busy: all {self._size} connections are in use."
            ) from None
        finally:
            self._waiting -= 1
        try:
            connection = await self._open()
        except BaseException:
            self._places.release()
            raise
        self._taken_at[connection] = time.monotonic()
        return connection

    async def _open(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        return await self._address.connect(**self._settings)

    def give_back(self, connection: Connection) -> None:
        """Return a connection to the pool unless it is broken or in use."""
        took = time.monotonic() - self._taken_at.pop(connection)
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._typical += _SHARE * (took - self._typical)
            self._free.append(connection)
        self._places.release()

    async def close(self) -> None:
        while self._free:
            await close(self._free.pop())


async def close(connection: Connection) -> None:
    """Close a connection gracefully, or terminate it."""
    try:
        await connection.close(timeout=COMMAND_SECONDS)
    except Exception:  # noqa: BLE001 - it is gone one way or the other
        connection.terminate()


_OLDEST: Final = 12
_LOCK: Final = 0x62657370656B  # advisory lock that processes hold while they migrate: "bespek" in ASCII
_PATIENCE: Final = 60.0  # seconds to wait for another process that migrates, or for the migration itself
# Asked of the tables of the catalog: `to_regclass` may answer from memory within a transaction, and miss what another
# process has made while we waited for it.
_THERE: Final = """
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
       EXISTS (SELECT FROM pg_class JOIN pg_namespace AS s ON s.oid = relnamespace WHERE nspname = $1),
       EXISTS (SELECT FROM pg_class JOIN pg_namespace AS s ON s.oid = relnamespace
               WHERE nspname = $1 AND relname = 'version')
"""


async def migrate(name: str, connection: Connection) -> int:
    """Migrate the tables; return their previous version. Of several processes that call this, one does the work."""
    if connection.get_settings().server_encoding != "UTF8":
        raise ConfigError(f"{name} does not store text as UTF-8. Create a database with ENCODING 'UTF8' for the store.")
    if connection.get_server_version().major < _OLDEST:
        raise ConfigError(f"{name} is older than PostgreSQL {_OLDEST}, which the store needs.")
    version = await version_of(name, connection)
    if version < CURRENT:
        version = await _change(name, connection)
    return check_version(name, version, "database")


async def version_of(name: str, connection: Connection) -> int:
    """Return the version of the tables; 0 if there are no tables."""
    _, used, versioned = (await connection.fetch(_THERE, SCHEMA))[0]
    if not used:
        return 0
    if not versioned:
        raise ConfigError(
            f"{name} has a schema {SCHEMA} that belongs to something else. Rename it, or name another database "
            "with --store."
        )
    rows = await connection.fetch(f"SELECT version FROM {SCHEMA}.version")
    version: int = rows[0][0]
    return version


async def _change(name: str, connection: Connection) -> int:
    await connection.execute("BEGIN")
    try:
        await connection.execute("SET LOCAL lock_timeout = 0")
        await connection.fetch("SELECT pg_advisory_xact_lock($1)", _LOCK, timeout=_PATIENCE)
        version = await version_of(name, connection)
        if version < CURRENT:
            # CREATE SCHEMA IF NOT EXISTS wants the right to create one even where it exists.
            if not (await connection.fetch(_THERE, SCHEMA))[0][0]:
                await connection.execute(f"CREATE SCHEMA {SCHEMA}")
            if version == 0:
                await connection.execute(f"CREATE TABLE {SCHEMA}.version (version INTEGER NOT NULL)")
                await connection.execute(f"INSERT INTO {SCHEMA}.version VALUES (0)")
            for statement in statements(version, POSTGRES_WORDS):
                await connection.execute(statement, timeout=_PATIENCE)
            await connection.execute(f"UPDATE {SCHEMA}.version SET version = {CURRENT}")
        await connection.execute("COMMIT")
    except BaseException:
        # Closing it undoes what was done, whatever state it is in.
        connection.terminate()
        raise
    return version
