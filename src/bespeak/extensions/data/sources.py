"""Sources of rows: SELECT statements, SQLite files opened read-only, files read with DuckDB, and Python functions."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from bespeak.contract.data_set import DataColumn, read_column
from bespeak.documents.table_files import open_duckdb, quote_name, quote_text
from bespeak.errors import DataSourceError
from bespeak.extensions.data.query import DataFilter, DataQuery, select
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.functions.annotations import dump_foreign

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Described:
    columns: tuple[DataColumn, ...]  # columns with the types they have in the source
    key: tuple[str, ...] = ()  # columns of the primary key


class DataSource(Protocol):
    """Rows that can be read, by several callers at once. Both methods raise DataSourceError."""

    def describe(self) -> Described:
        """Open the source and return its columns. Blocks; called once, before the server runs."""
        ...

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        """Return the rows of a page, in order, with at least the columns of the query."""
        ...

    async def close(self) -> None: ...


_SIGNS = {"eq": "=", "min": ">=", "max": "<="}


class Dialect:
    """How one database writes expressions. The relation is always called `t`."""

    def selected(self, column: DataColumn) -> str:
        """Write a column in the list of results."""
        return self.compared(column)

    def compared(self, column: DataColumn) -> str:
        """Write a column in a comparison."""
        return f"t.{quote_name(column.name)}"

    def parameter(self, number: int, column: DataColumn, value: Any) -> str:
        """Write the parameter of this number, as something that `compared` can be compared with."""
        raise NotImplementedError

    def bound(self, column: DataColumn, value: Any) -> Any:
        """Return the value as the driver takes it."""
        raise NotImplementedError

    def contains(self, left: str, right: str) -> str:
        """Write a test for a text within a text, regardless of case."""
        return f"strpos(lower({left}), lower({right})) > 0"


def load_driver(name: str, advice: str) -> Any:
    """Import the package of a database, which is an extra."""
    try:
        return import_module(name)
    except ImportError:
        raise DataSourceError(advice) from None


def as_relation(query: str) -> str:
    """Make a relation of an operator's SELECT. The line break ends a comment at its end."""
    return f"({query.strip().rstrip(';')}\n)"


class Select:
    def __init__(self, dialect: Dialect, relation: str, columns: Mapping[str, DataColumn], query: DataQuery) -> None:
        self.parameters: list[Any] = []
        self._dialect = dialect
        self._columns = columns
        where = [self._condition(one) for one in query.filters]
        if query.after is not None:
            where.append(self._position(query))
        order: list[str] = []
        for name, descending in query.order:
            left = dialect.compared(columns[name])
            # Databases disagree on the place of NULL. Without the first term an index can give the order.
            order += [f"({left} IS NULL)"] if columns[name].nullable else []
            order.append(f"{left} DESC" if descending else left)
        names = [f"{dialect.selected(columns[name])} AS {quote_name(name)}" for name in query.columns]
        # Without its limit: DuckDB reads a file with one thread if there is one.
        self.unlimited = (
            f"SELECT {', '.join(names)} FROM {relation} AS t"
            + (f" WHERE {' AND '.join(where)}" if where else "")
            + (f" ORDER BY {', '.join(order)}" if order else "")
        )
        self.text = f"{self.unlimited} LIMIT {query.limit:d} OFFSET {query.skip or 0:d}"

    def _add(self, column: DataColumn, value: Any) -> str:
        self.parameters.append(self._dialect.bound(column, value))
        return self._dialect.parameter(len(self.parameters), column, value)

    def _condition(self, one: DataFilter) -> str:
        column = self._columns[one.column]
        left = self._dialect.compared(column)
        if one.op == "contains":
            return self._dialect.contains(left, self._add(column, one.value))
        if one.op == "in":
            return f"{left} IN ({', '.join(self._add(column, value) for value in one.value)})"
        return f"{left} {_SIGNS[one.op]} {self._add(column, one.value)}"

    def _position(self, query: DataQuery) -> str:
        """Write the condition for rows behind a position, or at it if rows there are skipped by their number."""
        assert query.after is not None
        rest = "TRUE" if query.skip is not None else "FALSE"
        for (name, descending), value in reversed(list(zip(query.order, query.after, strict=True))):
            column = self._columns[name]
            left = self._dialect.compared(column)
            if value is None:  # nothing comes after the rows without a value, and only they are equal
                rest = f"({left} IS NULL AND {rest})"
                continue
            right = self._add(column, value)
            behind = f"{left} {'<' if descending else '>'} {right}"
            null = f" OR {left} IS NULL" if column.nullable else ""
            rest = f"({behind}{null} OR ({left} = {right} AND {rest}))"
        return rest


ResultT = TypeVar("ResultT")
Cancellable = Callable[[Callable[[], Any]], AbstractContextManager[None]]  # opens a block that another thread ends


async def run_interruptible(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function in a thread, with a Cancellable as its last argument. Cancelling ends its block."""
    interruption = _Interruption()
    try:
        return await run_in_thread(function, *arguments, interruption.block)
    except asyncio.CancelledError:
        interruption.happen()
        raise


class _Interruption:
    """Ends a block at most once, and never after it was left: its connection may be closed then."""

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._interrupt: Callable[[], Any] | None = None
        self._happened = False

    def happen(self) -> None:
        with self._lock:
            self._happened = True
            if self._interrupt is not None:
                self._interrupt()

    @contextmanager
    def block(self, interrupt: Callable[[], Any]) -> Iterator[None]:
        with self._lock:
            if self._happened:
                raise InterruptedError("cancelled before it began")
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None


_BUSY_SECONDS: Final = 5.0
# https://sqlite.org/datatype3.html#determination_of_column_affinity, after the types that SQLite does not know
_TYPES: Final = (
    ("BOOL", "boolean"),
    ("DATETIME", "date-time"),
    ("TIMESTAMP", "date-time"),
    ("DATE", "date"),
    ("JSON", "object"),
    ("INT", "integer"),
    *((name, "string") for name in ("CHAR", "CLOB", "TEXT", "UUID")),
    ("BLOB", ""),
    *((name, "number") for name in ("REAL", "FLOA", "DOUB", "NUM", "DEC")),
)
_INT64: Final = 1 << 63
_LARGEST: Final = 1.7976931348623157e308


class SqliteDialect(Dialect):
    """Texts, integers and reals. Dates are compared as texts, times by their value."""

    def selected(self, column: DataColumn) -> str:
        return f"t.{quote_name(column.name)}"

    def compared(self, column: DataColumn) -> str:
        name = f"t.{quote_name(column.name)}"
        return f"julianday({name})" if column.kind == "date-time" else name

    def parameter(self, number: int, column: DataColumn, value: Any) -> str:
        return f"julianday(?{number})" if column.kind == "date-time" else f"?{number}"

    def bound(self, column: DataColumn, value: Any) -> Any:
        return as_number(value) if column.kind in ("integer", "number") else value

    def contains(self, left: str, right: str) -> str:
        return f"bespeak_contains({left}, {right})"


def as_number(value: Any) -> int | float:
    """Return a number within what databases hold; a larger one compares like the largest."""
    number = value if isinstance(value, int | float) else float(value)
    if isinstance(number, int) and -_INT64 <= number < _INT64:
        return number
    try:
        return max(-_LARGEST, min(_LARGEST, float(number)))
    except OverflowError:
        return _LARGEST if number > 0 else -_LARGEST


class SqliteSource:
    def __init__(self, path: Path, *, table: str = "", query: str = "") -> None:
        self._path = path
        self._table = table
        self._relation = quote_name(table) if table else as_relation(query)

    def describe(self) -> Described:
        with self._opened() as connection:
            if not self._table:  # a view of this connection alone tells the types of its columns
                connection.execute("PRAGMA query_only = OFF")
                connection.execute(f"CREATE TEMP VIEW bespeak_described AS SELECT * FROM {self._relation}")
            found = connection.execute(
                'SELECT name, type, pk, "notnull" FROM pragma_table_xinfo(?)', [self._table or "bespeak_described"]
            ).fetchall()
            if not found:
                raise DataSourceError(f"{self._path} has no table {self._table!r}")
            connection.execute(f"SELECT * FROM {self._relation} AS t LIMIT 0")
        columns = []
        for name, native, key, filled in found:
            kind = next((kind for part, kind in _TYPES if part in native.upper()), None)
            column = read_column(name, kind)
            if column is not None:
                always = filled or (key and kind == "integer")  # other primary keys may hold NULL
                columns.append(DataColumn(name, column.schema, nullable=not always, native=native))
            elif kind is None:
                columns.append(DataColumn(name, {}, native=native))
        primary = sorted((key, name) for name, _, key, _ in found if key)
        return Described(tuple(columns), tuple(name for _, name in primary))

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        return await run_interruptible(self._read, Select(SqliteDialect(), self._relation, columns, query))

    async def close(self) -> None:
        pass

    def _read(self, statement: Select, cancellable: Cancellable) -> list[Mapping[str, Any]]:
        with self._opened() as connection, cancellable(connection.interrupt):
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(statement.text, statement.parameters)]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            address = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, timeout=_BUSY_SECONDS, uri=True, isolation_level=None)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.create_function(
                    "bespeak_contains",
                    2,
                    lambda text, part: text is not None and str(part).lower() in str(text).lower(),
                    deterministic=True,
                )
                yield connection
        except sqlite3.Error as error:
            raise DataSourceError(f"{self._path} cannot be read: {error}") from error


_FILE_TYPES: Final = (
    ("DATE", "date"),
    ("TIMESTAMP", "date-time"),
    ("BOOLEAN", "boolean"),
    *((name, "string") for name in ("VARCHAR", "UUID", "ENUM", "TIME")),
    *((name, "number") for name in ("DECIMAL", "DOUBLE", "FLOAT", "REAL")),
    *((name, "object") for name in ("JSON", "STRUCT", "MAP")),
    *((name, "integer") for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")),
    *((name, "integer") for name in ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")),
)
_NATIVE: Final = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "date-time": "TIMESTAMP WITH TIME ZONE",
}
_DUCKDB: Final = ("duckdb", "files are read with DuckDB: install bespeak[data]")
_MEMORY: Final = "512MB"
_BUFFER: Final = 8_000_000  # bytes that one thread parses: with the usual 32 MB, small files are parsed by one alone
_LONGEST_LINE: Final = 2_000_000  # bytes: DuckDB reads a file with a line of 100 MB as empty, without an error


class DuckDialect(Dialect):
    """Parameters are texts that are cast to the type of their column."""

    def selected(self, column: DataColumn) -> str:
        name = f"t.{quote_name(column.name)}"
        if column.kind in ("array", "object"):
            return f"CAST(to_json({name}) AS VARCHAR)"
        # Python would need pytz for times with a zone.
        return f"CAST({name} AS VARCHAR)" if column.kind in ("date-time", "string") else name

    def compared(self, column: DataColumn) -> str:
        name = f"t.{quote_name(column.name)}"
        if column.kind == "string" and column.native != "VARCHAR":
            return f"CAST({name} AS VARCHAR)"
        if column.native in ("DOUBLE", "FLOAT", "REAL"):
            return f"CASE WHEN isfinite({name}) THEN {name} END"  # JSON has no NaN, so it counts as no value
        return name

    def parameter(self, number: int, column: DataColumn, value: Any) -> str:
        if column.kind in ("integer", "number"):
            exact = isinstance(value, str) and column.native.startswith("DECIMAL")
            return f"CAST(${number} AS {column.native})" if exact else f"${number}"
        return f"CAST(${number} AS {_NATIVE[column.kind]})"

    def bound(self, column: DataColumn, value: Any) -> Any:
        exact = isinstance(value, str) and column.native.startswith("DECIMAL")
        return as_number(value) if column.kind in ("integer", "number") and not exact else value

    def contains(self, left: str, right: str) -> str:
        return f"contains(lower({left}), lower({right}))"


class FileSource:
    """Rows of one file. Changes of its content are seen by the next read; its columns must stay."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kind = path.suffix.lower().strip(".")
        self._database: duckdb.DuckDBPyConnection | None = None
        self._columns: tuple[DataColumn, ...] = ()
        self._opening = Lock()

    def describe(self) -> Described:
        duckdb = load_driver(*_DUCKDB)
        try:
            self._check_lines()
            # Not kept: a process that only looks at sources, such as that of several workers, closes none.
            with self._open() as database:
                found = database.execute(f"DESCRIBE SELECT * FROM {self._relation()}").fetchall()
                self._columns = tuple(_file_column(name, native) for name, native, *_ in found)
                filled = ", ".join(f"count(*) = count({quote_name(column.name)})" for column in self._columns)
                [always] = database.execute(f"SELECT {filled} FROM {self._relation()}").fetchall()
        except (duckdb.Error, OSError) as error:
            raise DataSourceError(f"{self.path} cannot be read: {_first_line(error)}") from None
        columns = zip(self._columns, always, strict=True)
        return Described(tuple(replace(one, nullable=not is_filled) for one, is_filled in columns if one.schema))

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        return await run_interruptible(self._read, self.select(query, columns))

    def select(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> Select:
        """Write a query as a statement for a database of DuckDB that can read the file."""
        return Select(DuckDialect(), self._relation(), columns, query)

    async def close(self) -> None:
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _read(self, statement: Select, cancellable: Cancellable) -> list[Mapping[str, Any]]:
        duckdb = load_driver(*_DUCKDB)
        if not self.path.is_file():  # DuckDB would take it for a pattern
            raise DataSourceError(f"{self.path} does not exist")
        try:
            with self._opening:
                self._database = self._database or self._open()
                cursor = self._database.cursor()
            with cursor, cancellable(cursor.interrupt):
                cursor.execute(statement.text, statement.parameters)
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except duckdb.Error as error:
            raise DataSourceError(f"{self.path} cannot be read: {_first_line(error)}") from None

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Open a database in memory that may read the file, and whose settings cannot be changed any more."""
        opened: duckdb.DuckDBPyConnection = open_duckdb(self.path, memory=_MEMORY)
        return opened

    def _relation(self) -> str:
        """Write the call that reads the file: with guessed types until they are known, then with those."""
        path = quote_text(str(self.path.absolute()))
        types = ", ".join(f"{quote_text(column.name)}: {quote_text(column.native)}" for column in self._columns)
        if self._kind == "parquet":
            return f"read_parquet({path})"
        if self._kind in ("jsonl", "ndjson"):
            form = f"columns = {{{types}}}" if types else "sample_size = -1"
            return f"read_json({path}, format = 'newline_delimited', {form})"
        # Without a given dialect, DuckDB reads a broken quote as text.
        mark = "\t" if self._kind == "tsv" else ","
        dialect = f"header = true, delim = '{mark}', quote = '\"', escape = '\"', buffer_size = {_BUFFER}"
        form = f"auto_detect = false, columns = {{{types}}}" if types else "sample_size = -1"
        return f"read_csv({path}, {dialect}, {form})"

    def _check_lines(self) -> None:
        with self.path.open("rb") as file:
            start = file.read(_LONGEST_LINE)
        if self._kind != "parquet" and len(start) == _LONGEST_LINE and b"\n" not in start:
            raise DataSourceError(f"{self.path} has a line of more than {_LONGEST_LINE:,} bytes")


def _file_column(name: str, native: str) -> DataColumn:
    known = (kind for part, kind in _FILE_TYPES if native.startswith(part))
    column = read_column(name, "array" if native.endswith("]") else next(known, ""))
    return DataColumn(name, {} if column is None else column.schema, native=native)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


MOST_SCANNED: Final = 100_000  # rows that a function may return for one page
_FEW: Final = 500  # rows that are selected without a thread


class FunctionSource:
    """Calls a function for each page: `rows()` or `rows(query)`, sync in a thread or async, a list or an iterator."""

    def __init__(self, function: Callable[..., Any], columns: tuple[DataColumn, ...]) -> None:
        self._function = function
        self._columns = columns
        self._takes_query = bool(inspect.signature(function).parameters)

    def describe(self) -> Described:
        return Described(self._columns)

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        arguments = (query,) if self._takes_query else ()
        function = inspect.unwrap(self._function)
        if inspect.isasyncgenfunction(function):
            rows = await _collect(self._function(*arguments))
        elif inspect.iscoroutinefunction(function):
            rows = await _collect(await self._function(*arguments))
        else:
            rows = await run_in_thread(lambda: _take(self._function(*arguments)))
        return await run_in_thread(select, rows, columns, query) if len(rows) > _FEW else select(rows, columns, query)

    async def close(self) -> None:
        pass


async def _collect(rows: Any) -> list[Mapping[str, Any]]:
    if not isinstance(rows, AsyncIterable):
        return _take(rows)
    taken: list[Any] = []
    async for row in rows:
        taken.append(row)
        if len(taken) > MOST_SCANNED:
            break
    return _take(taken)


def _take(rows: Iterable[Any]) -> list[Mapping[str, Any]]:
    taken: list[Mapping[str, Any]] = []
    for row in rows:
        if len(taken) == MOST_SCANNED:
            raise DataSourceError(f"the function returned more than {MOST_SCANNED:,} rows; it should use the filters")
        taken.append(row if isinstance(row, Mapping) else _as_mapping(row))
    return taken


def _as_mapping(row: Any) -> Mapping[str, Any]:
    found = msgspec.to_builtins(row, builtin_types=(), enc_hook=dump_foreign)
    if not isinstance(found, Mapping):
        kind = type(row).__name__
        raise DataSourceError(f"the function returned a row of type {kind}; a row is a mapping or an object")
    return found
