"""The tables of a PostgreSQL database: migrated by whichever process starts first."""

from __future__ import annotations

from typing import Final

from bespeak.errors import ConfigError
from bespeak.state.store.migrations import CURRENT, POSTGRES_WORDS, statements
from bespeak.state.store.postgres_address import SCHEMA, Connection

_OLDEST: Final = 12
_LOCK: Final = 0x62657370656B
"""Advisory lock that processes hold while they migrate: "bespek" in ASCII."""
_PATIENCE: Final = 60.0
"""Seconds to wait for another process that migrates, or for the migration itself."""
# Asked of the tables of the catalog: `to_regclass` may answer from memory within a transaction, and miss what another
# process has made while we waited for it.
_THERE: Final = """
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
       EXISTS (SELECT FROM pg_class JOIN pg_namespace AS s ON s.oid = relnamespace WHERE nspname = $1),
       EXISTS (SELECT FROM pg_class JOIN pg_namespace AS s ON s.oid = relnamespace
               WHERE nspname = $1 AND relname = 'version')
"""


async def migrate(name: str, connection: Connection) -> int:
    """Migrate the tables and return their previous version. Several processes may call this at once: one does the
    work.
    """
    if connection.get_settings().server_encoding != "UTF8":
        raise ConfigError(f"{name} does not store text as UTF-8. Create a database with ENCODING 'UTF8' for the store.")
    if connection.get_server_version().major < _OLDEST:
        raise ConfigError(f"{name} is older than PostgreSQL {_OLDEST}, which the store needs.")
    version = await version_of(name, connection)
    if version < CURRENT:
        version = await _change(name, connection)
    if version > CURRENT:
        raise ConfigError(
            f"{name} was written by a newer bespeak (tables of version {version}; this one knows {CURRENT}). "
            "Use that release, or another database with --store."
        )
    return version


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
