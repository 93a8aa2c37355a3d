"""Whole tables: counted, exported and filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

from bespeak.state.store.command import Command, Conflict, Rows, Statement, Steps
from bespeak.state.store.shape import Shape, shapes

_PAGE: Final = 100
"""Rows held in memory at once; a row may hold a whole answer."""
_BATCH: Final = 50
"""Rows of one INSERT."""


class WrongRowError(Exception):
    """Raised for a row that is not valid, with the reason and its line."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


NumberedRow = tuple[int, str, tuple[Any, ...]]
"""A row with its origin: `(line, table, values)`."""


class CountRows(Command, frozen=True):
    """Count the rows of a table."""

    table: str

    def steps(self) -> Steps:
        """Return a number."""
        rows = yield Statement(f"SELECT count(*) FROM {shapes()[self.table].name}")
        return rows[0][0]


class CountExpired(Command, frozen=True):
    """Count the expired rows of a table."""

    table: str

    def steps(self) -> Steps:
        """Return a number."""
        table = shapes()[self.table].name
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE expires <= {{now}}")
        return rows[0][0]


class ReadTables(Command, frozen=True):
    """Pass on every row of every table, a page at a time, from one snapshot.

    For `Store.read`, which runs all statements of a command in one transaction. Each page starts after the key of the
    previous row, so that nothing is skipped or sorted.
    """

    take: Callable[[str, Rows], bool]
    """Callback for a table and some of its rows between two statements; False stops reading."""

    def steps(self) -> Steps:
        """Return the number of rows."""
        # A driver may begin again after the first statement, when it sees that there are more.
        yield Statement("SELECT 1")
        count = 0
        for shape in shapes().values():
            at = [index for index, column in enumerate(shape.columns) if column.name in shape.key]
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
    rows: Callable[[], Iterable[NumberedRow]]
    """Iterator over all rows; called again if the transaction has to restart."""

    def steps(self) -> Steps:
        """Return the number of rows, or a Conflict: `not-empty` with the table, `wrong-row` with line and message."""
        for shape in shapes().values():
            if (yield Statement(f"SELECT 1 FROM {shape.name} LIMIT 1")):
                return Conflict("not-empty", {"table": shape.name})
        count = 0
        try:
            for table, batch in _batches(self.rows()):
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
            if shape.is_numbered:
                yield Statement(f"{{advance {shape.name}}}")
        return count


def _batches(rows: Iterable[NumberedRow]) -> Iterator[tuple[str, Sequence[NumberedRow]]]:
    for table, group in groupby(rows, key=lambda row: row[1]):
        batch: list[NumberedRow] = []
        for row in group:
            batch.append(row)
            if len(batch) == _BATCH:
                yield table, batch
                batch = []
        if batch:
            yield table, batch


def _page(shape: Shape, *, first: bool) -> str:
    columns, key = ", ".join(column.name for column in shape.columns), ", ".join(shape.key)
    behind = "" if first else f"WHERE ({key}) > ({', '.join('?' * len(shape.key))}) "
    return f"SELECT {columns} FROM {shape.name} {behind}ORDER BY {key} LIMIT {_PAGE}"


def _insert(shape: Shape, rows: int) -> str:
    columns = ", ".join(column.name for column in shape.columns)
    row = f"({', '.join('?' * len(shape.columns))})"
    return f"INSERT INTO {shape.name} ({columns}) VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING RETURNING 1"
