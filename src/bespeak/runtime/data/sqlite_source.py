"""A table or a SELECT of an SQLite file, opened read-only for each read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from bespeak.contract.data_set import DataColumn, read_column
from bespeak.errors import DataSourceError
from bespeak.runtime.data.interruptible import Cancellable, run_interruptible
from bespeak.runtime.data.query import DataQuery
from bespeak.runtime.data.source import Described
from bespeak.runtime.data.statement import Dialect, Statement, as_relation, quote

_BUSY_SECONDS: Final = 5.0
# https://sqlite.org/datatype3.html#determination_of_column_affinity, after the types that SQLite does not know
_TYPES: Final = (
    ("BOOL", "boolean"),
    ("DATETIME", "date-time"),
    ("TIMESTAMP", "date-time"),
    ("DATE", "date"),
    ("JSON", "object"),
    ("INT", "integer"),
    ("CHAR", "string"),
    ("CLOB", "string"),
    ("TEXT", "string"),
    ("UUID", "string"),
    ("BLOB", ""),
    ("REAL", "number"),
    ("FLOA", "number"),
    ("DOUB", "number"),
    ("NUM", "number"),
    ("DEC", "number"),
)
_INT64: Final = 1 << 63
_LARGEST: Final = 1.7976931348623157e308


class SqliteDialect(Dialect):
    """Texts, integers and reals. Dates are compared as texts, times by their value."""

    def selected(self, column: DataColumn) -> str:
        return f"t.{quote(column.name)}"

    def compared(self, column: DataColumn) -> str:
        name = f"t.{quote(column.name)}"
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
    """Rows of an SQLite file."""

    def __init__(self, path: Path, *, table: str = "", query: str = "") -> None:
        self._path = path
        self._table = table
        self._relation = quote(table) if table else as_relation(query)

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
        statement = Statement(SqliteDialect(), self._relation, columns, query)
        return await run_interruptible(self._read, statement)

    async def close(self) -> None:
        pass

    def _read(self, statement: Statement, cancellable: Cancellable) -> list[Mapping[str, Any]]:
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
                connection.create_function("bespeak_contains", 2, _contains, deterministic=True)
                yield connection
        except sqlite3.Error as error:
            raise DataSourceError(f"{self._path} cannot be read: {error}") from error


def _contains(text: Any, part: Any) -> bool:
    return text is not None and str(part).lower() in str(text).lower()
