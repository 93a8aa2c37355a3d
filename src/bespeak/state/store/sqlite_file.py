"""A SQLite file: opened as the store needs it, its tables brought up to date, its faults put into words."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.state.store.migrations import CURRENT, SQLITE_WORDS, statements

BUSY_SECONDS: Final = 10.0
"""How long somebody else may hold the file. Longer than any transaction takes, shorter than callers wait."""
_CHECKED_BYTES: Final = 32 * 1024 * 1024
"""Files up to here are looked through at every start; larger ones by `bespeak store check`."""
_OLDEST: Final = (3, 35, 0)
"""The first SQLite with RETURNING."""
_APPLICATION: Final = 0x62737065
"""Written into the head of our files, so that those of others are told from them."""
_SYNCHRONOUS: Final = {"full": "FULL", "process": "NORMAL"}
_PRIMARY: Final = 0xFF
"""The part of an error code that says what kind of error it is."""
_SMALLEST: Final = 512
"""Bytes of the smallest database."""
_OWNER_ONLY: Final = 0o600
"""Answers and records may hold what concerns only those they were for."""


def connect(path: str, *, durability: str = "full", readonly: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions begin and end where the code says so."""
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
    """The connection that writes, to a file that is there, whole and up to date; else a ConfigError says what to do."""
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
            _prove_writable(connection)
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(explain(path, error)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(path: str, connection: sqlite3.Connection) -> int:
    """The version of the tables, 0 for an empty file; a ConfigError if they are somebody else's, or newer than we."""
    # One statement, so that another process that makes the tables has made all of this or nothing.
    version, application, things = connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), "
        "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if application != _APPLICATION and (version or things):
        raise ConfigError(
            f"{path} is a SQLite database of something else. Name another file with --store, or none for the default "
            "one."
        )
    if version > CURRENT:
        raise ConfigError(
            f"{path} was written by a newer bespeak (tables of version {version}; this one knows {CURRENT}). "
            "Use that release, or another file with --store."
        )
    return int(version)


def migrate(path: str, connection: sqlite3.Connection) -> int:
    """Bring the tables up to date; the version they had. Several processes may do this at once: one does the work."""
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
    """What a look through the whole file finds wrong with it."""
    try:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({most})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def is_outage(error: BaseException) -> bool:
    """Whether the fault lies with the file or the machine, and not with what was asked of it."""
    return isinstance(error, sqlite3.Error) and _code(error) in _FAULTS


def concerns_all(error: BaseException) -> bool:
    """Whether whatever else is asked of the file would meet the same fault; damage may be in one place only."""
    return isinstance(error, sqlite3.Error) and is_outage(error) and not is_damage(error)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not what it should be."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(path: str, error: sqlite3.Error) -> str:
    """What an error of SQLite means for the operator."""
    advice = _FAULTS.get(_code(error))
    return f"The store {path} {advice.format(error=error)}" if advice else f"The store {path} cannot be used: {error}."


_FAULTS: Final = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({error}). Name a file in a folder that can be written with --store.",
    sqlite3.SQLITE_READONLY: "is read-only for this process, so that nothing can be promised ({error}). "
    "Make the file and its folder writable, or name another one with --store.",
    sqlite3.SQLITE_PERM: "may not be used by this process ({error}). Make the file and its folder writable.",
    sqlite3.SQLITE_NOTADB: "is no SQLite database, or its beginning is damaged ({error}). "
    "Put an earlier copy in its place, or name another file with --store.",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}). `bespeak store check` says more; put an earlier copy in its place.",
    sqlite3.SQLITE_FULL: "has no room to grow ({error}). Free some space.",
    sqlite3.SQLITE_IOERR: "could not be read or written ({error}). Look for a full or failing disk.",
    sqlite3.SQLITE_BUSY: f"was held by another process for more than {BUSY_SECONDS:g} seconds ({{error}}).",
    sqlite3.SQLITE_LOCKED: f"was held for more than {BUSY_SECONDS:g} seconds ({{error}}).",
    sqlite3.SQLITE_PROTOCOL: "was held by other processes for too long ({error}).",
    sqlite3.SQLITE_NOMEM: "needs more memory than there is ({error}).",
}


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python module itself have no code.
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY


def _make(path: Path) -> None:
    """Make the file for its owner only, or see that the one there can be used."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
    except FileExistsError:
        # Not opened to find out: closing a file lets go of every lock that this process has on it.
        if not path.is_file():
            raise ConfigError(f"The store cannot be at {path}, which is no ordinary file.") from None
        if 0 < path.stat().st_size < _SMALLEST:
            # SQLite would take it for an empty one, and overwrite it.
            raise ConfigError(f"The store {path} is no SQLite database. Name another file with --store.") from None
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            which = "it" if not os.access(path, os.W_OK) else f"its folder {path.parent}, where its log is kept,"
            raise ConfigError(
                f"The store {path} cannot be used: this process may not write to {which}, and could keep no promise. "
                "Change the permissions, or name another file with --store."
            ) from None
    except OSError as error:
        raise ConfigError(
            f"The store {path} cannot be made: {error.strerror}. Name a file in a folder that can be written with "
            "--store."
        ) from error


def _prepare(path: str, connection: sqlite3.Connection) -> None:
    """Set what holds for the file, and look through it. One of somebody else is left as it is."""
    version_of(path, connection)
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise ConfigError(
            f"The store {path} is on a file system that cannot keep its log ({mode}). Name a file on a local disk with "
            "--store."
        )
    # Pages that change often are copied from the log into the file once for all changes in 16 MB of log.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if Path(path).stat().st_size <= _CHECKED_BYTES:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ConfigError(
                f"The store {path} is damaged ({found}). `bespeak store check` says more; put an earlier copy in its "
                "place, or rescue what can be read with `bespeak store export`."
            )


def _prove_writable(connection: sqlite3.Connection) -> None:
    """Commit something that changes nothing: what would keep the first promise from being kept shows now."""
    connection.execute(f"PRAGMA user_version = {CURRENT}")
