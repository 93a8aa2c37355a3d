"""CSV, JSON-lines and Parquet files, read by DuckDB, which may open this file and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.data_set import DataColumn, read_column
from bespeak.errors import DataSourceError
from bespeak.extensions.data.query import DataQuery
from bespeak.extensions.data.sources import (
    Cancellable,
    Described,
    Dialect,
    Select,
    as_number,
    load_driver,
    quote,
    run_interruptible,
)

if TYPE_CHECKING:
    import duckdb

_TYPES: Final = (
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
_DRIVER: Final = ("duckdb", "files are read with DuckDB: install bespeak[data]")
_MEMORY: Final = "512MB"
_LONGEST_LINE: Final = 2_000_000  # bytes: DuckDB reads a file with a line of 100 MB as empty, without an error


class DuckDialect(Dialect):
    """Parameters are texts that are cast to the type of their column."""

    def selected(self, column: DataColumn) -> str:
        name = f"t.{quote(column.name)}"
        if column.kind in ("array", "object"):
            return f"CAST(to_json({name}) AS VARCHAR)"
        # Python would need pytz for times with a zone.
        return f"CAST({name} AS VARCHAR)" if column.kind in ("date-time", "string") else name

    def compared(self, column: DataColumn) -> str:
        name = f"t.{quote(column.name)}"
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
        self._path = path
        self._kind = path.suffix.lower().strip(".")
        self._database: duckdb.DuckDBPyConnection | None = None
        self._columns: tuple[DataColumn, ...] = ()
        self._opening = Lock()

    def describe(self) -> Described:
        duckdb = load_driver(*_DRIVER)
        try:
            self._check_lines()
            # Not kept: a process that only looks at sources, such as that of several workers, closes none.
            with self._open() as database:
                found = database.execute(f"DESCRIBE SELECT * FROM {self._relation()}").fetchall()
                self._columns = tuple(_column(name, native) for name, native, *_ in found)
                filled = ", ".join(f"count(*) = count({quote(column.name)})" for column in self._columns)
                [always] = database.execute(f"SELECT {filled} FROM {self._relation()}").fetchall()
        except (duckdb.Error, OSError) as error:
            raise DataSourceError(f"{self._path} cannot be read: {_first_line(error)}") from None
        columns = zip(self._columns, always, strict=True)
        return Described(tuple(replace(one, nullable=not is_filled) for one, is_filled in columns if one.schema))

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        return await run_interruptible(self._read, Select(DuckDialect(), self._relation(), columns, query))

    async def close(self) -> None:
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _read(self, statement: Select, cancellable: Cancellable) -> list[Mapping[str, Any]]:
        duckdb = load_driver(*_DRIVER)
        if not self._path.is_file():  # DuckDB would take it for a pattern
            raise DataSourceError(f"{self._path} does not exist")
        try:
            with self._opening:
                self._database = self._database or self._open()
                cursor = self._database.cursor()
            with cursor, cancellable(cursor.interrupt):
                cursor.execute(statement.text, statement.parameters)
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except duckdb.Error as error:
            raise DataSourceError(f"{self._path} cannot be read: {_first_line(error)}") from None

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Open a database in memory that may read the file, and whose settings cannot be changed any more."""
        database = load_driver(*_DRIVER).connect()
        for setting in (
            f"SET allowed_paths = [{_text(str(self._path.absolute()))}]",
            f"SET memory_limit = '{_MEMORY}'",
            "SET threads = 1",
            "SET temp_directory = ''",
            "SET TimeZone = 'UTC'",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            database.execute(setting)
        opened: duckdb.DuckDBPyConnection = database
        return opened

    def _relation(self) -> str:
        """Write the call that reads the file: with guessed types until they are known, then with those."""
        path = _text(str(self._path.absolute()))
        types = ", ".join(f"{_text(column.name)}: {_text(column.native)}" for column in self._columns)
        if self._kind == "parquet":
            return f"read_parquet({path})"
        if self._kind in ("jsonl", "ndjson"):
            form = f"columns = {{{types}}}" if types else "sample_size = -1"
            return f"read_json({path}, format = 'newline_delimited', {form})"
        # Without a given dialect, DuckDB reads a broken quote as text.
        mark = "\t" if self._kind == "tsv" else ","
        dialect = f"header = true, delim = '{mark}', quote = '\"', escape = '\"'"
        form = f"auto_detect = false, columns = {{{types}}}" if types else "sample_size = -1"
        return f"read_csv({path}, {dialect}, {form})"

    def _check_lines(self) -> None:
        with self._path.open("rb") as file:
            start = file.read(_LONGEST_LINE)
        if self._kind != "parquet" and len(start) == _LONGEST_LINE and b"\n" not in start:
            raise DataSourceError(f"{self._path} has a line of more than {_LONGEST_LINE:,} bytes")


def _column(name: str, native: str) -> DataColumn:
    kind = "array" if native.endswith("]") else next((kind for part, kind in _TYPES if native.startswith(part)), "")
    column = read_column(name, kind)
    return DataColumn(name, {} if column is None else column.schema, native=native)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
