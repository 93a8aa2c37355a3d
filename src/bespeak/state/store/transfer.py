"""Export of a store to JSON lines, and import: the same for every driver, so that state can move between them.

The first line names the format and the version of the tables, each further line holds a row, and the last one gives the
number of rows, so that a truncated file is detected.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec

from bespeak.state.store.command import Conflict, Rows
from bespeak.state.store.commands.tables import FillTables, NumberedRow, ReadTables, WrongRowError
from bespeak.state.store.migrations import CURRENT
from bespeak.state.store.shape import Column, Shape, shapes
from bespeak.state.store.store import Store
from bespeak.text.reading.json_data import check_keys

FORMAT: Final = "bespeak-store"
_LONGEST_LINE: Final = 64 * 1024 * 1024
_INT64: Final = 1 << 63
_T = TypeVar("_T")


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str
    row: dict[str, Any]


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: int


async def export_store(store: Store, write: Callable[[bytes], object]) -> int:
    """Write every row of one snapshot while the store keeps running; return the number of rows.

    At most one page of rows is in memory. On SQLite the WAL cannot be truncated meanwhile.
    """
    encode = msgspec.json.encode
    faults: list[OSError] = []

    def take(table: str, rows: Rows) -> bool:
        names = [column.name for column in shapes()[table].columns]
        try:
            for row in rows:
                write(encode(_Line(table, dict(zip(names, row, strict=True)))) + b"\n")
        except OSError as error:
            # Raised here, it would pass for a fault of the store.
            faults.append(error)
        return not faults

    write(encode(_Head(FORMAT, CURRENT)) + b"\n")
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
    if isinstance(outcome, Conflict):
        return outcome
    count: int = outcome[0]
    return count


def _read(path: Path) -> Iterator[NumberedRow]:
    """Read the rows of a file, one at a time."""
    try:
        with path.open("rb") as file:
            yield from _rows(file)
    except OSError as error:
        raise WrongRowError(0, f"the file cannot be read: {error.strerror or error}") from error


def _rows(file: IO[bytes]) -> Iterator[NumberedRow]:
    head = _decode(_next(file, 1), 1, _Head)
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
        found = _decode(line, number, _Line)
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


def _values(shape: Shape, row: dict[str, Any], number: int) -> tuple[Any, ...]:
    """Return the values in the order of the columns."""
    if len(row) != len(shape.columns) or any(column.name not in row for column in shape.columns):
        names = {column.name for column in shape.columns}
        odd = min(names ^ row.keys())
        fault = "is missing" if odd in names else "is not a column of the table"
        raise WrongRowError(number, f"{odd[:40]!r} of {shape.name} {fault}")
    return tuple(_value(shape, column, row[column.name], number) for column in shape.columns)


def _value(shape: Shape, column: Column, value: Any, number: int) -> Any:
    if value is None and not column.required:
        return None
    found = _READ[column.kind](value)
    if found is None:
        raise WrongRowError(number, f"{column.name!r} of {shape.name} must be {_NAMES[column.kind]}")
    return found


def _text(value: Any) -> str | None:
    # PostgreSQL keeps no text with a NUL in it.
    return value if isinstance(value, str) and "\0" not in value else None


def _blob(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64 else None


def _real(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _INT64 and math.isfinite(value) else None


_READ: Final[dict[str, Callable[[Any], Any]]] = {"text": _text, "blob": _blob, "integer": _integer, "real": _real}
_NAMES: Final = {"text": "text", "blob": "base64", "integer": "an integer", "real": "a number"}
