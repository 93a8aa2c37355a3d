"""A table or a SELECT of a PostgreSQL database, in read-only transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from bespeak.contract.data_set import DataColumn, read_column
from bespeak.documents.table_files import quote_name
from bespeak.errors import DataSourceError
from bespeak.extensions.data.query import DataQuery
from bespeak.extensions.data.sources import Described, Dialect, Select, as_number, as_relation, load_driver

_DRIVER: Final = ("asyncpg", "PostgreSQL needs asyncpg: install bespeak[postgres]")
_MOST_CONNECTIONS: Final = 4
_CONNECT_SECONDS: Final = 5.0
_TYPES: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("float4", "float8", "numeric"), "number"),
    **dict.fromkeys(("json", "jsonb"), "object"),
    **dict.fromkeys(("timestamp", "timestamptz"), "date-time"),
    "bool": "boolean",
    "date": "date",
    "bytea": "",
}
"""Types by their names in pg_type; others are read as texts, arrays as arrays, and bytes not at all."""
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name"})
_KEY: Final = """
SELECT a.attname, a.attnotnull, array_position(i.indkey::int2[], a.attnum) AS place
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0
"""


class PostgresDialect(Dialect):
    """Parameters are texts that are cast to the type of their column, so that the driver need not know it."""

    def selected(self, column: DataColumn) -> str:
        if column.kind in ("array", "object"):
            return f"to_json(t.{quote_name(column.name)})::text"
        return self.compared(column)

    def compared(self, column: DataColumn) -> str:
        name = f"t.{quote_name(column.name)}"
        if column.kind == "string" and column.native not in _TEXTS:
            return f"{name}::text"
        if column.native in ("float4", "float8"):
            # JSON has no NaN and no infinities, so they count as no value.
            return f"CASE WHEN {name} NOT IN ('NaN', 'Infinity', '-Infinity') THEN {name} END"
        return f"NULLIF({name}, 'NaN')" if column.native == "numeric" else name

    def parameter(self, number: int, column: DataColumn, value: Any) -> str:
        cast = column.native if column.native in _TYPES else "text"
        if column.kind == "integer":
            cast = "int8" if isinstance(as_number(value), int) else "numeric"
        return f"${number}::text::{cast}" if cast != "text" else f"${number}::text"

    def bound(self, column: DataColumn, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return str(value).lower() if isinstance(value, bool) else str(as_number(value))


class PostgresSource:
    """Rows of a PostgreSQL database. `address` has the password, so it is never shown; `name` is."""

    def __init__(self, address: str, name: str, *, timeout: float, table: str = "", query: str = "") -> None:
        self._address = address
        self._name = name
        self._table = ".".join(map(quote_name, table.split("."))) if table else ""
        self._relation = self._table or as_relation(query)
        self._settings = {
            "application_name": "bespeak",
            "default_transaction_read_only": "on",
            "statement_timeout": str(int(timeout * 1000)),
            "jit": "off",
        }
        self._pool: Any = None
        self._opening = asyncio.Lock()

    def describe(self) -> Described:
        with ThreadPoolExecutor(1) as thread:  # a loop of its own: this is called with and without a running one
            return thread.submit(asyncio.run, self._describe()).result()

    async def _describe(self) -> Described:
        asyncpg = load_driver(*_DRIVER)
        try:
            times = {"timeout": _CONNECT_SECONDS, "command_timeout": _CONNECT_SECONDS}
            connection = await asyncpg.connect(self._address, **times, server_settings=self._settings)
            try:
                found = (await connection.prepare(f"SELECT * FROM {self._relation} AS t")).get_attributes()
                facts = await connection.fetch(_KEY, self._table) if self._table else []
            finally:
                await connection.close(timeout=_CONNECT_SECONDS)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise self._unreadable(error) from error
        filled = {name for name, is_filled, _ in facts if is_filled}
        columns = (_column(one.name, one.type, filled) for one in found)
        key = sorted((place, name) for name, _, place in facts if place is not None)
        return Described(tuple(column for column in columns if column.schema), tuple(name for _, name in key))

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        asyncpg = load_driver(*_DRIVER)
        statement = Select(PostgresDialect(), self._relation, columns, query)
        try:
            async with self._opening:
                if self._pool is None:
                    sizes = {"min_size": 0, "max_size": _MOST_CONNECTIONS, "timeout": _CONNECT_SECONDS}
                    self._pool = await asyncpg.create_pool(self._address, **sizes, server_settings=self._settings)
            return [dict(row) for row in await self._pool.fetch(statement.text, *statement.parameters)]
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise self._unreadable(error) from error

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    def _unreadable(self, error: Exception) -> DataSourceError:
        return DataSourceError(f"{self._name} cannot be read: {str(error) or type(error).__name__}")


def _column(name: str, native: Any, filled: set[str]) -> DataColumn:
    kind = "array" if native.kind == "array" else _TYPES.get(native.name, "string")
    column = read_column(name, kind)
    schema = {} if column is None else column.schema
    if native.name == "uuid":
        schema = {**schema, "format": "uuid"}
    return DataColumn(name, schema, nullable=name not in filled, native=native.name)
