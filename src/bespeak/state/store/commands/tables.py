"""Whole tables: counted, read from end to end, filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

from bespeak.state.store.command import Command, Conflict, Rows, Statement, Steps
from bespeak.state.store.shape import Shape, shapes

_PAGE: Final = 100
"""Rows that are held at once; a row may hold a whole answer."""
_BATCH: Final = 50
"""Rows of one INSERT."""


class WrongRowError(Exception):
    """A row that cannot be taken: why, and where it stands."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


NumberedRow = tuple[int, str, tuple[Any, ...]]
"""`(line, table, values)`: a row with the place it comes from."""


class CountRows(Command, frozen=True):
    """How many rows a table has."""

    table: str

    def steps(self) -> Steps:
        """A number."""
        rows = yield Statement(f"SELECT count(*) FROM {shapes()[self.table].name}")
        return rows[0][0]


class CountExpired(Command, frozen=True):
    """How many rows of a table wait to be removed."""

    table: str

    def steps(self) -> Steps:
        """A number."""
        table = shapes()[self.table].name
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE expires <= {{now}}")
        return rows[0][0]


class ReadTables(Command, frozen=True):
    """Hand over every row of every table, a page at a time, all of one moment.

    For `Store.read`, which runs all statements of a command in one transaction. Pages are found by the key of the row
    before them, so that nothing is skipped or sorted.
    """

    take: Callable[[str, Rows], bool]
    """Called with a table and some of its rows between two statements; False ends the reading."""

    def steps(self) -> Steps:
        """How many rows there were."""
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
    """Put rows into tables that are all empty: the whole of them, or nothing."""

    guards: ClassVar[bool] = True
    rows: Callable[[], Iterable[NumberedRow]]
    """The rows from the first one on, each time it is called: a transaction may have to be begun again."""

    def steps(self) -> Steps:
        """How many rows there were, or a Conflict: `not-empty` with the table, `wrong-row` with line and message."""
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
