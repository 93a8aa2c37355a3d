"""Read-only inspection of a store: whether it is intact, its version and its contents."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.errors import ConfigError
from bespeak.state.store.commands.records import CountRecords, KindCount
from bespeak.state.store.settings import MEMORY, POSTGRES, open_store, postgres_needed, resolved
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.sqlite import read_with
from bespeak.state.store.sqlite_file import connect, damage_of, explain, is_damage, version_of
from bespeak.state.store.transfer import CountExpired, CountRows, shapes

if TYPE_CHECKING:
    from bespeak.state.store.postgres_connection import Address, Connection

RECORDS: Final = "records"  # table of the records, which are of many kinds


class Examination(msgspec.Struct, frozen=True):
    name: str  # name of the store without credentials
    version: int  # version of the tables; 0 if there are no tables
    size: int  # size on disk in bytes
    damage: list[str] = []
    rows: Mapping[str, int] = {}  # number of rows of each table; empty if the version is not the current one
    expired: Mapping[str, int] = {}  # number of expired rows
    kinds: Mapping[str, int] = {}  # number of records of each kind that have not expired

    @property
    def is_current(self) -> bool:
        """True if the tables have the version of this release."""
        return self.version == CURRENT


async def examine(place: str) -> Examination:
    """Inspect the store at a place; raise ConfigError if it is missing or foreign."""
    if place.startswith(POSTGRES):
        return await _examine_postgres(place)
    return await asyncio.to_thread(_examine_file, _file(place))


async def upgrade(place: str) -> int:
    """Migrate the tables of a store that is not in use and return their previous version."""
    if place.startswith(POSTGRES):
        from bespeak.state.store.postgres_connection import migrate  # noqa: PLC0415 - an extra

        async with _connected(place) as (address, connection):
            return await migrate(address.name, connection)
    path = _file(place)
    before = (await asyncio.to_thread(_examine_file, path, quick=True)).version
    await open_store(str(path), role="sole").close()
    return before


def _file(place: str) -> Path:
    if place == MEMORY:
        raise ConfigError("The store `memory` exists only inside its process and cannot be inspected.")
    path = resolved(place)
    if not path.is_file():
        raise ConfigError(
            f"There is no store at {path}; a server creates it when it starts. Name another with --store."
        )
    return path


def _examine_file(path: Path, *, quick: bool = False) -> Examination:
    name, connection = f"The store {path}", None
    try:
        size = sum(file.stat().st_size for file in (path, path.with_name(path.name + "-wal")) if file.exists())
        connection = connect(str(path), readonly=True)
        version = version_of(str(path), connection)
    except (OSError, sqlite3.Error, ConfigError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error) and is_damage(error):
            # Its head cannot be read, or what says which tables there are.
            return Examination(name, 0, path.stat().st_size, [explain(str(path), error)])
        raise ConfigError(_explained(path, error)) from error
    try:
        damage = [] if quick else damage_of(connection)
        if quick or version != CURRENT:
            return Examination(name, version, size, damage)
        rows, expired = {}, {}
        kinds: Mapping[str, int] = {}
        for shape in shapes().values():
            try:
                rows[shape.name] = read_with(connection, CountRows(shape.name))
                if shape.expires:
                    expired[shape.name] = read_with(connection, CountExpired(shape.name))
                if shape.name == RECORDS:
                    kinds = _by_kind(read_with(connection, CountRecords()))
            except sqlite3.DatabaseError as error:
                damage = damage or [str(error)]
        return Examination(name, version, size, damage, rows, expired, kinds)
    finally:
        connection.close()


async def _examine_postgres(place: str) -> Examination:
    from bespeak.state.store.postgres_connection import version_of as version_in  # noqa: PLC0415 - an extra
    from bespeak.state.store.postgres_transaction import read  # noqa: PLC0415

    async with _connected(place) as (address, connection):
        version = await version_in(address.name, connection)
        if version > CURRENT:
            raise ConfigError(
                f"{address.name} was written by a newer bespeak (tables of version {version}; this one knows "
                f"{CURRENT}). Use that release."
            )
        size = (await connection.fetch(_POSTGRES_SIZE))[0][0]
        if version != CURRENT:
            return Examination(address.name, version, size)
        rows = {name: await read(connection, CountRows(name)) for name in shapes()}
        expired = {
            shape.name: await read(connection, CountExpired(shape.name)) for shape in shapes().values() if shape.expires
        }
        kinds = _by_kind(await read(connection, CountRecords()))
        return Examination(address.name, version, size, [], rows, expired, kinds)


_POSTGRES_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
    "WHERE relkind = 'r' AND relnamespace = to_regnamespace('bespeak')"
)


@asynccontextmanager
async def _connected(place: str) -> AsyncIterator[tuple[Address, Connection]]:
    with postgres_needed():
        from bespeak.state.store.postgres_connection import Address  # noqa: PLC0415 - an extra

    address = Address(place, "full")
    try:
        connection = await address.open()
        try:
            yield address, connection
        finally:
            await connection.close(timeout=5)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(address.explain(error)) from error


def _by_kind(counts: list[KindCount]) -> Mapping[str, int]:
    kinds: dict[str, int] = {}
    for one in counts:
        kinds[one.kind] = kinds.get(one.kind, 0) + one.records
    return kinds


def _explained(path: Path, error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        return explain(str(path), error)
    return f"The store {path} cannot be read: {error}" if isinstance(error, OSError) else str(error)
