"""The address of a PostgreSQL database: connections, pauses between attempts, and explained errors."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]

from bespeak.errors import ConfigError, StoreUnavailableError

_logger = logging.getLogger(__name__)

SCHEMA: Final = "bespeak"
"""Schema of all tables, so that the database may hold other things."""
CONNECT_SECONDS: Final = 3.0
COMMAND_SECONDS: Final = 5.0
"""Timeout of a statement in seconds."""
LOCK_MILLISECONDS: Final = 4000
"""Time for which a statement waits for a row that another transaction has locked."""
_IDLE_MILLISECONDS: Final = 3000
"""Time after which PostgreSQL ends a transaction whose process has fallen silent: it lost its power or its link. Less
than others wait for its rows.
"""
_KEEPALIVE: Final = {"idle": 5, "interval": 2, "count": 3}
"""Seconds without traffic before a peer is probed, seconds between probes, and how many it may miss."""
_SILENT_MILLISECONDS: Final = 10_000
"""Time after which a peer that confirms nothing is given up."""
_SOCKET_OPTIONS: Final = {
    "TCP_KEEPIDLE": _KEEPALIVE["idle"],
    "TCP_KEEPINTVL": _KEEPALIVE["interval"],
    "TCP_KEEPCNT": _KEEPALIVE["count"],
    "TCP_USER_TIMEOUT": _SILENT_MILLISECONDS,
}
"""The same for the client's end, where the system has them."""
_CALM: Final = 2.0
"""Seconds without a failure after which a database works again."""
_LATELY: Final = 60.0
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0

_FORM: Final = "postgresql://user:password@host:port/database"
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
    """Whether a database works, as its log reports it: once when it fails, once when it works again.

    Several connections find out at different times. So a success counts when nothing has failed for some seconds.
    """

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
        lately = self._locked_at is not None and now < self._locked_at + _LATELY
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
        """Seconds until the next attempt."""
        return max(0.0, self._next - self._clock())

    async def pause(self) -> None:
        """Wait until the next attempt."""
        await asyncio.sleep(max(_SHORTEST_PAUSE, self.wait))

    def explain(self, error: BaseException) -> str:
        """Explain an error to the operator, without the password."""
        if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
            return (
                f"{self.name} refused the login ({error}). Check the user and the password in the address of the "
                "store, and the server's pg_hba.conf."
            )
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            return f"{self.name} does not exist ({error}). Create the database, or name another one with --store."
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            return f"{self.name} does not allow it ({error}). Grant the user what it needs on the schema {SCHEMA}."
        if isinstance(error, asyncpg.TooManyConnectionsError):
            return f"{self.name} has no connection left ({error}). Raise max_connections, or run fewer processes."
        if is_locked(error):
            return (
                f"{self.name} works, but another transaction kept a row locked for {LOCK_MILLISECONDS / 1000:g} s. "
                "Look for transactions that do not end in pg_stat_activity."
            )
        if isinstance(error, TimeoutError):
            return f"{self.name} does not answer in time."
        if isinstance(error, OSError):
            reason = error.strerror or error
            return f"{self.name} cannot be reached ({reason}). Check that it runs and accepts connections."
        return f"{self.name} cannot be used: {error}"


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
        error,
        asyncpg.DeadlockDetectedError | asyncpg.SerializationError | asyncpg.InvalidCachedStatementError,
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
    """Return the name of the database without credentials."""
    shown = _shown(dsn)
    if shown is None:
        raise ConfigError(
            f"The address of the database cannot be read. It has the form {_FORM}; in the password write %40 for @, "
            "%3A for :, %2F for /, %3F for ? and %23 for #."
        )
    hosts, database = shown
    return f"The PostgreSQL database {database} at {hosts}" if database else f"The PostgreSQL at {hosts}"


def _shown(dsn: str) -> tuple[str, str] | None:
    """Return hosts and database; None if they might be part of the password."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return None
    hosts = parts.netloc.rpartition("@")[2] or "localhost"
    astray = "@" not in parts.netloc and "@" in f"{parts.path}{parts.query}{parts.fragment}"
    if astray or not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        return None
    return hosts, parts.path.strip("/")
