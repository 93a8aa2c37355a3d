"""Export of a store to JSON lines, and import, for every driver; the migrations give the shape of the tables."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

import msgspec

from bespeak.errors import ConfigError
from bespeak.state.store.commands.records import CountRecords, KindCount
from bespeak.state.store.settings import MEMORY, POSTGRES, open_store, postgres_needed, resolved
from bespeak.state.store.sql import CURRENT, SQLITE_WORDS, check_version, statements
from bespeak.state.store.sqlite import read_with
from bespeak.state.store.sqlite_file import connect, damage_of, explain, is_damage, version_of
from bespeak.state.store.store import Command, Conflict, Result, Rows, Statement, Steps, Store, read_number
from bespeak.text.reading.json_data import check_keys

if TYPE_CHECKING:
    from bespeak.state.store.postgres_connection import Address, Connection

_INTEGER: Final = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_KINDS: Final[Mapping[str, Any]] = {
    "TEXT": Annotated[str, msgspec.Meta(pattern=r"\A[^\0]*\Z")],  # PostgreSQL keeps no text with a NUL in it
    "BLOB": bytes,
    "REAL": Annotated[float, msgspec.Meta(gt=-(2.0**63), lt=2.0**63)],
    "BIGINT": _INTEGER,
    "INTEGER": _INTEGER,
}


@dataclass(frozen=True, slots=True)
class TableShape:
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # columns of the primary key, in order
    row: type[msgspec.Struct]  # what a row has to be, with a member for each column
    expires: bool


@cache
def shapes() -> Mapping[str, TableShape]:
    """Return every table of the current version by name, in order of creation."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements(0, SQLITE_WORDS):
            connection.execute(statement)
        names = connection.execute(
            # A full-text index and its parts are made again from what they index.
            "SELECT name FROM sqlite_master AS m WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND NOT EXISTS "
            "(SELECT 1 FROM sqlite_master AS v WHERE v.sql LIKE 'CREATE VIRTUAL%' AND m.name LIKE v.name || '%') "
            "ORDER BY rowid"
        ).fetchall()
        return {name: _shape(connection, name) for (name,) in names}
    finally:
        connection.close()


def _shape(connection: sqlite3.Connection, table: str) -> TableShape:
    rows = connection.execute("SELECT name, type, [notnull], pk FROM pragma_table_info(?)", (table,)).fetchall()
    members = [(name, _KINDS[kind] if required or key else _KINDS[kind] | None) for name, kind, required, key in rows]
    row = msgspec.defstruct(table, members, forbid_unknown_fields=True)
    key = tuple(name for _, name in sorted((key, name) for name, _, _, key in rows if key))
    expires = any(name == "expires" and required for name, _, required, _ in rows)
    return TableShape(table, row.__struct_fields__, key, row, expires)


_PAGE: Final = 100  # rows held in memory at once; a row may hold a whole answer
_BATCH: Final = 50  # rows of one INSERT


class WrongRowError(Exception):
    """Raised for a row that is not valid, with the reason and its line."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


NumberedRow = tuple[int, str, tuple[Any, ...]]  # a row with its origin: `(line, table, values)`


class CountRows(Command, frozen=True):
    table: str
    expired: bool = False  # True for those that have expired

    def steps(self) -> Result[int]:
        behind = " WHERE expires <= {now}" if self.expired else ""
        return read_number(f"SELECT count(*) FROM {shapes()[self.table].name}{behind}")


class ReadTables(Command, frozen=True):
    """Pass on every row of every table, a page at a time, from one snapshot.

    For `Store.read`, which runs all statements of a command in one transaction. Each page starts after the key of the
    previous row, so that nothing is skipped or sorted.
    """

    take: Callable[[str, Rows], bool]  # takes a table and some of its rows; False stops reading

    def steps(self) -> Result[int]:
        # A driver may begin again after the first statement, when it sees that there are more.
        yield Statement("SELECT 1")
        count = 0
        for shape in shapes().values():
            at = [index for index, column in enumerate(shape.columns) if column in shape.key]
            statement = Statement(_page(shape, first=True))
            while True:
                rows = yield statement
                count += len(rows)
                if rows and not self.take(shape.name, rows):
                    return count
                if len(rows) < _PAGE:
                    break
                # The columns of a key stand in its order, which a test sees to.
                statement = Statement(_page(shape, first=False), tuple(rows[-1][index] for index in at))
        return count


class FillTables(Command, frozen=True):
    """Insert rows into empty tables, completely or not at all."""

    guards: ClassVar[bool] = True
    rows: Callable[[], Iterable[NumberedRow]]  # iterator over all rows; called again if the transaction has to restart

    def steps(self) -> Steps:
        """Return the number of rows, or a Conflict: `not-empty` with the table, `wrong-row` with line and message."""
        for shape in shapes().values():
            if (yield Statement(f"SELECT 1 FROM {shape.name} LIMIT 1")):
                return Conflict("not-empty", {"table": shape.name})
        count = 0
        try:
            for table, group in groupby(self.rows(), key=lambda row: row[1]):
                while batch := list(islice(group, _BATCH)):
                    values = tuple(value for _, _, row in batch for value in row)
                    stored = yield Statement(_insert(shapes()[table], len(batch)), values)
                    if len(stored) < len(batch):
                        first, last = batch[0][0], batch[-1][0]
                        message = f"a row of {table} between the lines {first} and {last} has the key of another one"
                        return Conflict("wrong-row", {"line": first, "message": message})
                    count += len(batch)
        except WrongRowError as error:
            return Conflict("wrong-row", {"line": error.line, "message": str(error)})
        for shape in shapes().values():
            if shape.key == ("position",):
                yield Statement(f"{{advance {shape.name}}}")
        return count


def _page(shape: TableShape, *, first: bool) -> str:
    columns, key = ", ".join(shape.columns), ", ".join(shape.key)
    behind = "" if first else f"WHERE ({key}) > ({', '.join('?' * len(shape.key))}) "
    return f"SELECT {columns} FROM {shape.name} {behind}ORDER BY {key} LIMIT {_PAGE}"


def _insert(shape: TableShape, rows: int) -> str:
    columns = ", ".join(shape.columns)
    row = f"({', '.join('?' * len(shape.columns))})"
    return f"INSERT INTO {shape.name} ({columns}) VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING RETURNING 1"


FORMAT: Final = "bespeak-store"
_LONGEST_LINE: Final = 64 * 1024 * 1024
_T = TypeVar("_T")


class _ExportHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int


class _ExportLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str
    row: Any


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: int


async def export_store(store: Store, write: Callable[[bytes], object]) -> int:
    """Write every row of one snapshot, a page at a time, while the store runs; return the number of rows."""
    encode = msgspec.json.encode
    faults: list[OSError] = []

    def take(table: str, rows: Rows) -> bool:
        names = shapes()[table].columns
        try:
            for row in rows:
                write(encode(_ExportLine(table, dict(zip(names, row, strict=True)))) + b"\n")
        except OSError as error:
            # Raised here, it would pass for a fault of the store.
            faults.append(error)
        return not faults

    write(encode(_ExportHead(FORMAT, CURRENT)) + b"\n")
    count: int = await store.read(ReadTables(take))
    if faults:
        raise faults[0]
    write(encode(_End(count)) + b"\n")
    return count


async def import_store(store: Store, path: Path) -> int | Conflict:
    """Fill an empty store from a file, completely or not at all; return the number of rows or a Conflict.

    The Conflict is `not-empty` with the `table` that has rows, or `wrong-row` with `line` and `message`.
    """
    outcome = await store.do(FillTables(lambda: _read(path)))
    return outcome if isinstance(outcome, Conflict) else int(outcome[0])


def _read(path: Path) -> Iterator[NumberedRow]:
    """Read the rows of a file, one at a time."""
    try:
        with path.open("rb") as file:
            yield from _rows(file)
    except OSError as error:
        raise WrongRowError(0, f"the file cannot be read: {error.strerror or error}") from error


def _rows(file: IO[bytes]) -> Iterator[NumberedRow]:
    head = _decode(_next(file, 1), 1, _ExportHead)
    if head.format != FORMAT:
        raise WrongRowError(1, f"it is not an export of a store: the format is {head.format[:40]!r}, not {FORMAT!r}")
    if head.version != CURRENT:
        which = "newer" if head.version > CURRENT else "older"
        raise WrongRowError(
            1,
            f"it was written by {'a' if which == 'newer' else 'an'} {which} bespeak (tables of version {head.version}; "
            f"this one has {CURRENT}). Import it with that release"
            + ("" if which == "newer" else ", and update the store with `bespeak store migrate`"),
        )
    number, count = 1, 0
    while True:
        number += 1
        line = _next(file, number)
        if line.startswith(b'{"rows":'):
            break
        found = _decode(line, number, _ExportLine)
        shape = shapes().get(found.table)
        if shape is None:
            raise WrongRowError(number, f"there is no table {found.table[:40]!r}")
        yield number, shape.name, _values(shape, found.row, number)
        count += 1
    told = _decode(line, number, _End).rows
    if told != count:
        raise WrongRowError(number, f"it announces {told} rows but has {count}")
    if file.read(1):
        raise WrongRowError(number + 1, "there is text after the last line")


def _next(file: IO[bytes], number: int) -> bytes:
    line = file.readline(_LONGEST_LINE + 1)
    if not line:
        raise WrongRowError(number, "the file is truncated")
    if len(line) > _LONGEST_LINE:
        raise WrongRowError(number, f"the line is longer than {_LONGEST_LINE} bytes")
    return line


def _decode(line: bytes, number: int, kind: type[_T]) -> _T:
    try:
        check_keys(line, msgspec.json.decode(line))
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongRowError(number, str(error) or "it is nested too deeply") from error


def _values(shape: TableShape, row: Any, number: int) -> tuple[Any, ...]:
    try:
        return msgspec.structs.astuple(msgspec.convert(row, shape.row))
    except msgspec.ValidationError as error:
        raise WrongRowError(number, f"a row of {shape.name} is not valid: {error}") from error


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
                    expired[shape.name] = read_with(connection, CountRows(shape.name, expired=True))
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
        version = check_version(address.name, await version_in(address.name, connection), "database")
        size = (await connection.fetch(_POSTGRES_SIZE))[0][0]
        if version != CURRENT:
            return Examination(address.name, version, size)
        rows = {name: await read(connection, CountRows(name)) for name in shapes()}
        expiring = [one.name for one in shapes().values() if one.expires]
        expired = {name: await read(connection, CountRows(name, expired=True)) for name in expiring}
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
