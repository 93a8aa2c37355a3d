"""A SQLite file: opened as the store needs it, its tables brought up to date, its faults put into words."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.store.migrations import CURRENT, SQLITE_WORDS, statements

BUSY_SECONDS: Final = 30.0
_CHECKED_BYTES: Final = 32 * 1024 * 1024
"""Files up to here are looked through at every start; larger ones by `bespeak store check`."""
_OLDEST: Final = (3, 35, 0)
"""The first SQLite with RETURNING."""
SYNCHRONOUS: Final = {"full": "FULL", "process": "NORMAL"}


def connect(path: str, *, durability: str = "full", readonly: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions begin and end where the code says so."""
    in_memory = path.startswith("file:")
    name = path if in_memory or not readonly else f"{Path(path).resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(
        name, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=name.startswith("file:")
    )
    try:
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
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
    try:
        connection = connect(path, durability=durability)
    except sqlite3.Error as error:
        raise ConfigError(explain(path, error)) from error
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        fault = _damage(path, connection)
        if fault is not None:
            raise ConfigError(fault)
        migrate(path, connection)
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(explain(path, error)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(path: str, connection: sqlite3.Connection) -> int:
    """Bring the tables up to date; the version they had. Several processes may do this at once: one does the work."""
    version = version_of(connection)
    if version < CURRENT:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = version_of(connection)
            if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise ConfigError(
                    f"{path} is a SQLite database of something else. Name another file with --store, "
                    "or none for the default one."
                )
            for statement in statements(version, SQLITE_WORDS):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {CURRENT}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    elif version > CURRENT:
        raise ConfigError(
            f"{path} was written by a newer bespeak (tables of version {version}; this one knows {CURRENT}). "
            "Use that release, or another file with --store."
        )
    return version


def damage_of(connection: sqlite3.Connection) -> list[str]:
    """What a look through the whole file finds wrong with it."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    return [] if found == ["ok"] else found


def _damage(path: str, connection: sqlite3.Connection) -> str | None:
    file = Path(path)
    if path.startswith("file:") or not file.exists() or file.stat().st_size > _CHECKED_BYTES:
        return None
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found == "ok":
        return None
    return (
        f"The store {path} is damaged ({found}). `bespeak store check` says more; put a copy from before in its place, "
        "or rescue what can be read with `bespeak store export`."
    )


def explain(path: str, error: sqlite3.Error) -> str:
    """What an error of SQLite means for the operator."""
    text = str(error).lower()
    folder = Path(path).parent
    if "unable to open" in text:
        missing = "" if folder.is_dir() else f"; the folder {folder} does not exist"
        return f"The store {path} cannot be opened{missing}. Name a file in a folder that can be written with --store."
    if "readonly" in text or "read-only" in text:
        return (
            f"The store {path} is read-only for this process, and so is what it promises. "
            "Make the file and its folder writable, or name another one with --store."
        )
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return (
            f"The store {path} is damaged or no SQLite database ({error}). Put a copy from before in its place, "
            "or name another file with --store."
        )
    if "full" in text:
        return f"There is no room for the store {path} ({error}). Free some space."
    if "locked" in text or "busy" in text:
        return f"Another process held the store {path} for more than {BUSY_SECONDS:g} seconds ({error})."
    return f"The store {path} cannot be used: {error}."
