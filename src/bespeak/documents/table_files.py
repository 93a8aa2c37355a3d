"""Files of tables: Parquet and xlsx, read in batches of rows that JSON can express. The files may come from anybody.

Reading blocks. A file that is broken, or that grows beyond the bounds when it is unpacked, raises FormatError.
"""

from __future__ import annotations

import copy
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date, time, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.parsers import expat

import msgspec

from bespeak.documents.data_formats import FormatError, check_names, plain

PARQUET: Final = "application/vnd.apache.parquet"
_BATCH: Final = 1000
_MOST_UNPACKED: Final = 256 << 20  # bytes of all parts of a workbook
_MOST_CELLS: Final = 5_000_000  # of a sheet, with the empty ones between: each takes 32 bytes when a sheet is read
_CHUNK: Final = 1 << 20
_EXACT: Final = 1 << 53  # below it every whole number is a float
_MOST_SHOWN: Final = 64 << 20  # bytes of a Parquet file as JSON
_FORMS: Final = (
    # Types in the words of DuckDB, and how a column of each becomes what JSON has.
    ("TIMESTAMP WITH TIME ZONE", "replace(replace(CAST({0} AS VARCHAR), ' ', 'T'), '+00', 'Z')"),
    ("TIMESTAMP", "replace(CAST({0} AS VARCHAR), ' ', 'T')"),
    ("DOUBLE", "CASE WHEN isfinite({0}) THEN {0} END"),
    ("FLOAT", "CASE WHEN isfinite({0}) THEN {0} END"),
    ("BLOB", "base64({0})"),
)
_PLACE: Final = re.compile(r"(?s)([A-Z]{0,8})([0-9]{0,12}).*")  # of a cell: B12; of a row: 12


class MissingLibraryError(Exception):
    """A library of an extra that is not installed; the message names it."""


def load_library(name: str) -> Any:
    """Import a library of the extra `data`. Raises MissingLibraryError."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibraryError("the extra `data`: install bespeak[data]") from None


def open_duckdb(path: Path | None = None, folder: Path | None = None, memory: str = "256MB", threads: int = 1) -> Any:
    """Open a database in memory that can read one file and use one folder, and whose settings stay as they are."""
    database = load_library("duckdb").connect()
    for setting in (
        f"allowed_paths = [{quote_text(str(path.absolute())) if path else ''}]",
        f"allowed_directories = [{quote_text(str(folder.absolute())) if folder else ''}]",
        f"temp_directory = {quote_text(str(folder.absolute() / 'spilled') if folder else '')}",
        "max_temp_directory_size = '2GB'",
        f"memory_limit = '{memory}'",
        f"threads = {threads}",
        "TimeZone = 'UTC'",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "enable_external_access = false",  # behind what is allowed, in front of the lock
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database


def quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_parquet_batches(
    path: Path, cancellable: Callable[[Callable[[], Any]], AbstractContextManager[None]] = lambda _: nullcontext()
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a Parquet file. Raises FormatError and MissingLibraryError.

    Times are texts in ISO 8601, bytes are texts in base64, NaN and infinities are null. `cancellable` makes a block
    that another thread may end, from the function that interrupts the reading.
    """
    duckdb, file = load_library("duckdb"), f"read_parquet({quote_text(str(path.absolute()))})"
    try:
        with open_duckdb(path) as database, cancellable(database.interrupt):
            described = database.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()
            names = check_names([name for name, *_ in described])
            forms = [_form(kind).format(quote_name(name)) for name, kind, *_ in described]
            # As JSON made by the database, whose limit of memory then holds for values that are stored once and
            # repeated in every row.
            found = database.execute(f"SELECT CAST(json_array({', '.join(forms)}) AS VARCHAR) FROM {file}")
            while batch := found.fetchmany(_BATCH):
                yield [dict(zip(names, plain(msgspec.json.decode(text), 0), strict=True)) for (text,) in batch]
    except (duckdb.Error, msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FormatError(f"this is not a Parquet file that can be read: {str(error)[:200]}") from None


def _form(kind: str) -> str:
    return next((form for start, form in _FORMS if kind.startswith(start) and not kind.endswith("]")), "{0}")


def read_parquet(content: bytes, most: int) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file that fits into memory. Raises FormatError and MissingLibraryError."""
    rows: list[dict[str, Any]] = []
    size = 0
    with TemporaryDirectory(prefix="bespeak-") as folder:
        path = Path(folder, "rows.parquet")
        path.write_bytes(content)
        for batch in read_parquet_batches(path):
            rows += batch
            size += len(msgspec.json.encode(batch))
            if len(rows) > most or size > _MOST_SHOWN:
                raise FormatError(f"the file has more than {most:,} rows, or {_MOST_SHOWN >> 20} MiB as JSON")
    return rows


def write_parquet(data: Any) -> bytes:
    """Write rows as Parquet: columns of one type each, and objects and lists as columns of JSON.

    Raises FormatError for what Parquet cannot express, and MissingLibraryError.
    """
    rows = data if isinstance(data, list) else [data]
    if not all(isinstance(row, Mapping) for row in rows):
        raise FormatError("Parquet has rows with named columns; the data has something else")
    names = check_names(list(dict.fromkeys(name for row in rows for name in row)))
    if not names or len({name.lower() for name in names}) < len(names):
        raise FormatError("Parquet needs columns, whose names differ not only in case")
    types = [_column_type(name, [row.get(name) for row in rows]) for name in names]
    duckdb = load_library("duckdb")
    with TemporaryDirectory(prefix="bespeak-") as folder:
        source, path = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet")
        try:
            # Under numbers, because names of columns may be anything.
            lines = [{str(at): row[name] for at, name in enumerate(names) if name in row} for row in rows]
            source.write_bytes(msgspec.json.Encoder().encode_lines(lines))
            with open_duckdb(folder=Path(folder)) as database:
                shown = ", ".join(f'"{at}" AS {quote_name(name)}' for at, name in enumerate(names))
                columns = ", ".join(f"'{at}': '{kind}'" for at, kind in enumerate(types))
                form = f"format='newline_delimited', records=true, columns={{{columns}}}"
                read = f"read_json({quote_text(str(source))}, {form})"
                database.execute(f"COPY (SELECT {shown} FROM {read}) TO {quote_text(str(path))} (FORMAT parquet)")
            return path.read_bytes()
        except (duckdb.Error, UnicodeError) as error:
            raise FormatError(f"the rows cannot be written as Parquet: {str(error)[:200]}") from None


def _column_type(name: str, values: Sequence[Any]) -> str:
    """Return the type of a column in the words of DuckDB. Raises FormatError for several types or huge numbers."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds or kinds == {str}:
        return "VARCHAR"
    if kinds <= {dict, list}:
        return "JSON"
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds <= {int, float}:
        whole = [value for value in values if isinstance(value, int)]
        least, most = min(whole, default=0), max(whole, default=0)
        if float in kinds and least >= -_EXACT and most <= _EXACT:
            return "DOUBLE"
        if kinds == {int} and least >= -(1 << 63) and most < 1 << 64 and (least >= 0 or most < 1 << 63):
            return "BIGINT" if most < 1 << 63 else "UBIGINT"
        raise FormatError(f"the column {name[:80]!r} has whole numbers that none of its types can hold exactly")
    raise FormatError(f"the column {name[:80]!r} has values of several types; Parquet has one type for each column")


def read_xlsx_batches(path: Path, sheet: str | None = None) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a sheet, by default the first one, below its first row with values, which names the columns.

    A formula gives the value that was stored with it, an error and an empty cell give null. Dates, times and durations
    are texts in ISO 8601. Rows without any value are left out. Raises FormatError and MissingLibraryError.
    """
    library = load_library("python_calamine")
    _check_workbook(path)  # first: the library ends the process when memory is short
    try:
        with library.CalamineWorkbook.from_path(path) as book:
            if sheet is not None and sheet not in book.sheet_names:
                known = ", ".join(book.sheet_names[:20])
                raise FormatError(f"the workbook has no sheet {sheet[:80]!r}; it has: {known[:1000]}")
            found = book.get_sheet_by_index(0) if sheet is None else book.get_sheet_by_name(sheet)
            rows = ([plain_cell(cell) for cell in row] for row in found.iter_rows())
            yield from _batches(row for row in rows if any(cell is not None for cell in row))
    except (library.CalamineError, OSError, ValueError) as error:
        raise FormatError(f"this is not an xlsx workbook: {str(error)[:200]}") from None


def _check_workbook(path: Path) -> None:
    """Unpack all parts in bounded memory to see what they really hold: sizes that a file declares may be wrong.

    Two cells at opposite corners are enough for a sheet that takes all memory, so the cells between them count.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = {part.filename.lower() for part in archive.infolist()}
            if "[content_types].xml" not in names or {"content.xml", "xl/workbook.bin"} & names:
                raise FormatError("this is not an xlsx workbook")
            if sum(part.file_size for part in archive.infolist()) > _MOST_UNPACKED:
                raise FormatError(f"the workbook has more than {_MOST_UNPACKED >> 20} MiB when it is unpacked")
            left = _MOST_UNPACKED
            for part in archive.infolist():
                left -= _check_part(archive, part, left)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error, lzma.LZMAError) as e:
        raise FormatError(f"this is not an xlsx workbook that can be read: {str(e)[:200]}") from None


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, most: int) -> int:
    """Return the size of a part, which must not have more bytes than it declares, or too many cells."""
    opened = copy.copy(part)
    opened.file_size = most + 1  # else the reader would stop at the declared size
    size, before, is_sheet, layout = 0, b"", False, _Layout()
    with archive.open(opened) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > part.file_size:
                raise FormatError(f"the part {part.filename[:80]} is larger than the workbook says")
            is_sheet = is_sheet or b"sheetData" in before + chunk
            before = chunk[-10:]
            layout.feed(chunk)
            if is_sheet and layout.broken:  # pictures are not XML, but the library reads the start of a broken sheet
                raise FormatError(f"the part {part.filename[:80]} is not XML that can be read")
    return size


class _Layout:
    """Counts the elements of a part, and the cells of a sheet with the empty ones between them."""

    def __init__(self) -> None:
        self.broken = False
        self._row = self._column = self._right = self._bottom = self._elements = 0
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._break

    def feed(self, chunk: bytes) -> None:
        try:
            if not self.broken:
                self._parser.Parse(chunk, False)
        except expat.ExpatError:
            self.broken = True

    def _break(self, *_: Any) -> None:
        self.broken = True

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        kind = name.rpartition(":")[2]
        if kind in ("c", "row"):
            # A row or a cell without a place is behind the one before it.
            place = _PLACE.fullmatch(attributes.get("r", "").strip().upper())
            letters, digits = place.groups() if place else ("", "")
            self._row = int(digits) if digits else self._row + (kind == "row")
            column = 0
            for letter in letters:
                column = column * 26 + ord(letter) - 64
            self._column = 0 if kind == "row" else column or self._column + 1
            self._right, self._bottom = max(self._right, self._column), max(self._bottom, self._row)
        if self._right * self._bottom > _MOST_CELLS or self._elements > 3 * _MOST_CELLS:
            raise FormatError(f"a sheet has more than {_MOST_CELLS:,} cells, or its cells are too far apart")


def _batches(rows: Iterable[list[Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield rows as objects, named by the first one."""
    names: list[str] = []
    batch: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        if not number:
            filled = max(index for index, cell in enumerate(row) if cell is not None) + 1
            names = check_names([_name(cell) for cell in row[:filled]])
            continue
        if any(cell is not None for cell in row[len(names) :]):
            raise FormatError(f"row {number} below the names has a value in a column without a name")
        batch.append(dict(zip(names, row, strict=False)))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _name(cell: Any) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else msgspec.json.encode(cell).decode()


def plain_cell(value: Any) -> Any:
    """Return a value of a table as JSON has it: whole numbers are integers, times are texts in ISO 8601."""
    if isinstance(value, float):
        # A sheet has only floats. What JSON lacks is no value.
        return None if not math.isfinite(value) else int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, date | time | timedelta):
        return msgspec.to_builtins(value)
    return None if value == "" else value
