"""Files of tables, read in batches of rows that JSON can express: xlsx. The files may come from anybody.

Reading blocks. A file that is broken, or that grows beyond the bounds when it is unpacked, raises FormatError.
"""

from __future__ import annotations

import copy
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import msgspec

from bespeak.documents.data_formats import FormatError, check_names

_BATCH: Final = 1000
_MOST_UNPACKED: Final = 256 << 20  # bytes of all parts of a workbook
_MOST_CELLS: Final = 5_000_000  # of a sheet, with the empty ones between: each takes 32 bytes when a sheet is read
_CHUNK: Final = 1 << 20
_EXACT: Final = 1 << 53  # below it every whole number is a float
_PLACE: Final = re.compile(r"(?s)([A-Z]{0,8})([0-9]{0,12}).*")  # of a cell: B12; of a row: 12


class MissingLibraryError(Exception):
    """A library of an extra that is not installed; the message names it."""


def load_library(name: str) -> Any:
    """Import a library of the extra `data`. Raises MissingLibraryError."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibraryError("the extra `data`: install bespeak[data]") from None


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
            rows = ([_plain_cell(cell) for cell in row] for row in found.iter_rows())
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


def _plain_cell(value: Any) -> Any:
    if isinstance(value, float):
        # A sheet has only floats. What JSON lacks is no value.
        return None if not math.isfinite(value) else int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, date | time | timedelta):
        return msgspec.to_builtins(value)
    return None if value == "" else value
