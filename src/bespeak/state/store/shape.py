"""The shape of the tables, read from a database that the migrations have made, so that the two cannot differ."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from bespeak.state.store.migrations import SQLITE_WORDS, statements

Kind = Literal["text", "blob", "real", "integer"]
_KINDS: Final[Mapping[str, Kind]] = {
    "TEXT": "text",
    "BLOB": "blob",
    "REAL": "real",
    "BIGINT": "integer",
    "INTEGER": "integer",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    kind: Kind
    required: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """One table."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns of the primary key, in order."""

    @property
    def is_numbered(self) -> bool:
        """True if the database numbers the rows."""
        return self.key == ("position",)

    @property
    def expires(self) -> bool:
        """True if the rows expire and are removed."""
        return any(column.name == "expires" and column.required for column in self.columns)


@cache
def shapes() -> Mapping[str, Shape]:
    """Return every table of the current version by name, in order of creation."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements(0, SQLITE_WORDS):
            connection.execute(statement)
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY rowid"
        ).fetchall()
        return {name: _shape(connection, name) for (name,) in names}
    finally:
        connection.close()


def _shape(connection: sqlite3.Connection, table: str) -> Shape:
    rows = connection.execute("SELECT name, type, [notnull], pk FROM pragma_table_info(?)", (table,)).fetchall()
    columns = tuple(Column(name, _KINDS[kind], bool(required or key)) for name, kind, required, key in rows)
    key = tuple(name for _, name in sorted((key, name) for name, _, _, key in rows if key))
    return Shape(table, columns, key)
