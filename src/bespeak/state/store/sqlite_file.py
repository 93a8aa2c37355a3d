"""An SQLite file: opened with the store's settings, migrated, locked, and its errors explained."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.state.store.sql import CURRENT, SQLITE_WORDS, check_version, statements

BUSY_SECONDS: Final = 10.0  # wait for a locked file: longer than any transaction, shorter than callers wait
_CHECKED_BYTES: Final = 32 * 1024 * 1024  # size up to which a file is checked at every start
_OLDEST: Final = (3, 35, 0)  # minimum version of SQLite: the first with RETURNING
_APPLICATION: Final = 0x62737065  # application id in the file header, which tells our files from others
_SYNCHRONOUS: Final = {"full": "FULL", "process": "NORMAL"}
_SMALLEST: Final = 512  # size in bytes of the smallest database
_OWNER_ONLY: Final = 0o600  # file mode: answers and records may hold private data


def connect(path: str, *, durability: str = "full", readonly: bool = False) -> sqlite3.Connection:
    """Open a connection in autocommit mode: transactions begin and end where the code says so."""
    in_memory = path.startswith("file:")
    name = path if in_memory or not readonly else f"{Path(path).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(
        name, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=name.startswith("file:")
    )
    try:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -16000")
        if readonly:
            connection.execute("PRAGMA query_only = ON")
        if in_memory:
            # Connections of one process share the pages; without this a reader is refused while the writer writes.
            connection.execute("PRAGMA read_uncommitted = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_writer(path: str, durability: str) -> sqlite3.Connection:
    """Open the writer's connection to an intact and migrated file; raise ConfigError with advice otherwise."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise ConfigError(f"SQLite {sqlite3.sqlite_version} is too old for the store; it needs 3.35 or newer.")
    in_memory = path.startswith("file:")
    if not in_memory:
        _make(Path(path))
    try:
        connection = connect(path, durability=durability)
    except sqlite3.Error as error:
        raise ConfigError(explain(path, error)) from error
    try:
        if not in_memory:
            _prepare(path, connection)
        migrate(path, connection)
        if not in_memory:
            # A change without effect, so that a write problem shows before the first promise.
            connection.execute(f"PRAGMA user_version = {CURRENT}")
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(explain(path, error)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(path: str, connection: sqlite3.Connection) -> int:
    """Return the version of the tables, 0 for an empty file; raise ConfigError if they are foreign or newer."""
    # One statement, so that another process that makes the tables has made all of this or nothing.
    version, application, things = connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), "
        "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if application != _APPLICATION and (version or things):
        raise ConfigError(
            f"{path} is an SQLite database of another application. Name another file, or omit --store for the default."
        )
    return check_version(path, int(version), "file")


def migrate(path: str, connection: sqlite3.Connection) -> int:
    """Migrate the tables; return their previous version. Of several processes that call this, one does the work."""
    version = version_of(path, connection)
    if version < CURRENT:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = version_of(path, connection)
            for statement in statements(version, SQLITE_WORDS):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {CURRENT}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return version


def damage_of(connection: sqlite3.Connection, most: int = 20) -> list[str]:
    """Check the whole file and return what is damaged."""
    try:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({most})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def is_outage(error: BaseException) -> bool:
    """Return True if the error is due to the file or the machine, not to the statement."""
    return isinstance(error, sqlite3.Error) and _code(error) in _FAULTS


def concerns_all(error: BaseException) -> bool:
    """Return True if every other statement would meet the same error; damage may be in one place only."""
    return isinstance(error, sqlite3.Error) and is_outage(error) and not is_damage(error)


def is_damage(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(path: str, error: sqlite3.Error) -> str:
    advice = _FAULTS.get(_code(error))
    return f"The store {path} {advice.format(error=error)}" if advice else f"The store {path} cannot be used: {error}."


_FAULTS: Final = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({error}). Name a file in a folder that can be written with --store.",
    sqlite3.SQLITE_READONLY: "is read-only for this process, so nothing can be stored ({error}). "
    "Make the file and its folder writable, or name another one with --store.",
    sqlite3.SQLITE_PERM: "may not be used by this process ({error}). Make the file and its folder writable.",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database, or its header is damaged ({error}). "
    "Restore a backup, or name another file with --store.",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}). Run `bespeak store check` for details; restore a backup.",
    sqlite3.SQLITE_FULL: "has no space left ({error}). Free some space.",
    sqlite3.SQLITE_IOERR: "could not be read or written ({error}). Look for a full or failing disk.",
    sqlite3.SQLITE_BUSY: f"was locked by another process for more than {BUSY_SECONDS:g} seconds ({{error}}).",
    sqlite3.SQLITE_LOCKED: f"was locked for more than {BUSY_SECONDS:g} seconds ({{error}}).",
    sqlite3.SQLITE_PROTOCOL: "was locked by other processes for too long ({error}).",
    sqlite3.SQLITE_NOMEM: "ran out of memory ({error}).",
}


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python module itself have no code. The lowest byte is the primary one.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _make(path: Path) -> None:
    """Create the file for its owner only, or check that the existing one is usable."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
    except FileExistsError:
        # Not opened to find out: closing a file lets go of every lock that this process has on it.
        if not path.is_file():
            raise ConfigError(f"The store cannot be at {path}, which is not a regular file.") from None
        if 0 < path.stat().st_size < _SMALLEST:
            # SQLite would take it for an empty one, and overwrite it.
            raise ConfigError(f"The store {path} is not an SQLite database. Name another file with --store.") from None
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            which = "it" if not os.access(path, os.W_OK) else f"its folder {path.parent}, where its log is kept,"
            raise ConfigError(
                f"The store {path} cannot be used: this process may not write to {which}, so nothing can be stored. "
                "Change the permissions, or name another file with --store."
            ) from None
    except OSError as error:
        raise ConfigError(
            f"The store {path} cannot be made: {error.strerror}. Name a file in a folder that can be written with "
            "--store."
        ) from error


def _prepare(path: str, connection: sqlite3.Connection) -> None:
    """Set the file's pragmas and check the file. A foreign file is left unchanged."""
    version_of(path, connection)
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise ConfigError(
            f"The store {path} is on a file system that does not support write-ahead logging ({mode}). "
            "Name a file on a local disk with --store."
        )
    # Pages that change often are copied from the log into the file once for all changes in 16 MB of log.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if Path(path).stat().st_size <= _CHECKED_BYTES:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ConfigError(
                f"The store {path} is damaged ({found}). Run `bespeak store check` for details. "
                "Restore a backup, or save the readable part with `bespeak store export`."
            )


if sys.platform != "win32":
    import fcntl


class FileLock:
    """A lock held for the lifetime of the process; the system releases it when the process dies."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        # Without locks every process takes part as one of several.
        self.exclusive = exclusive and sys.platform != "win32"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"The store needs the file {path} beside it, which cannot be written: {error.strerror}. "
                "Name a file in a folder that can be written with --store."
            ) from error
        try:
            if sys.platform != "win32":
                fcntl.flock(self._descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise ConfigError(
                f"Another server uses the store {str(path).removesuffix('.lock')}. Stop it, name another file with "
                "--store, or let one server run several processes with --workers."
            ) from error
        except OSError as error:
            self.release()
            raise ConfigError(
                f"The file system of {path} has no locks ({error.strerror}), so two servers could use the store "
                "at once. Name a file on a local disk with --store."
            ) from error

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
