"""Files of rows, read in batches in bounded memory, from any batch on. The files may come from anybody."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from bespeak.documents.data_formats import MEDIA_TYPES, FormatError, LineReader, read_data, read_json_row
from bespeak.documents.table_files import read_parquet_batches, read_xlsx_batches
from bespeak.text.source.tree import MAX_BYTES

ROW_FORMATS: Final = (*MEDIA_TYPES, "parquet", "xlsx")
BY_LINE: Final = frozenset({"csv", "jsonl"})  # formats whose rows are numbered by their line, from 1; others from 0
IN_BYTES: Final = frozenset({"json", *BY_LINE})  # formats whose marks have the bytes that were read
_MOST_BYTES: Final = 4 << 20  # bytes of a batch in a file
_PIECE: Final = 1 << 20  # bytes of a file of JSON that are looked at together, so the most that one row may have
_MARK: Final = "\xef\xbb\xbf"  # byte order mark of UTF-8
_TABLES: Final[Mapping[str, Callable[[Path], Iterator[list[Any]]]]] = {
    "parquet": read_parquet_batches,
    "xlsx": read_xlsx_batches,
}
_BETWEEN: Final = re.compile(r"[ \t\r\n]*")


class Mark(msgspec.Struct, frozen=True):
    """A place between two rows of a file."""

    offset: int = 0  # bytes before it
    number: int = 0  # lines before it, or rows
    names: tuple[str, ...] = ()  # columns of CSV


class Batch(msgspec.Struct, frozen=True):
    rows: list[tuple[int, Any]]  # number and value; a FormatError in the place of a row that is not valid
    after: Mark


def read_batches(path: Path, form: str, size: int, mark: Mark | None = None) -> Iterator[Batch]:
    """Yield the rows of a file behind a mark. Reading blocks. Raises FormatError if the rest cannot be read."""
    mark = mark or Mark()
    if form not in IN_BYTES:
        yield from _read_whole(path, form, size, mark.number)
        return
    with path.open("rb") as file:
        file.seek(mark.offset)
        if form == "json":
            yield from _read_json(file, size, mark)
            return
        reader, rows, begun = LineReader(file, form, mark.number, mark.names), [], mark.offset
        for row in reader:
            rows.append(row)
            if len(rows) >= size or (at := file.tell()) - begun > _MOST_BYTES:
                begun = at = file.tell()
                yield Batch(rows, Mark(at, reader.line, tuple(reader.names)))
                rows = []
        if rows:
            yield Batch(rows, Mark(file.tell(), reader.line, tuple(reader.names)))


def _read_whole(path: Path, form: str, size: int, skipped: int) -> Iterator[Batch]:
    if form in _TABLES:
        batches = _TABLES[form](path)
    else:
        with path.open("rb") as file:
            data = read_data(file.read(MAX_BYTES + 1), form)
        rows = data if isinstance(data, list) else [data]
        batches = (rows[at : at + size] for at in range(0, len(rows), size))
    number = 0
    for batch in batches:
        numbered = list(enumerate(batch, number))[max(skipped - number, 0) :]
        number += len(batch)
        if numbered:
            yield Batch(numbered, Mark(0, number))


def _read_json(file: BinaryIO, size: int, mark: Mark) -> Iterator[Batch]:
    """Read the elements of a list one by one; a document that is something else is one row."""
    text, number, rows, begun = _JsonText(file, mark.offset), mark.number, list[tuple[int, Any]](), mark.offset
    is_list = mark.offset > 0 or text.skip("[")
    while text.peek() not in ("", "]"):
        raw = text.take(number)
        try:
            rows.append((number, read_json_row(raw, number)))
        except FormatError as error:
            rows.append((number, error))
        number += 1
        if not (is_list and text.skip(",")):
            break
        if len(rows) >= size or text.offset - begun > _MOST_BYTES:
            begun = text.offset
            yield Batch(rows, Mark(begun, number))
            rows = []
    after = Mark(text.offset, number)
    if (is_list and not text.skip("]")) or text.peek():
        raise FormatError(f"row {number} is followed by something else than a comma or the end of the list")
    yield Batch(rows, after)


class _JsonText:
    """Finds the values of a JSON text in bounded memory.

    Each byte is a character here, since the structure of JSON is ASCII; a row is decoded when its end is known.
    """

    _scan = json.JSONDecoder(strict=False, parse_int=str, parse_float=str).raw_decode

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self._start = offset  # bytes before the text
        self._text = ""
        self._at = 0

    @property
    def offset(self) -> int:
        return self._start + self._at

    def peek(self) -> str:
        """Return the next character that is not blank; an empty text at the end."""
        while True:
            found = _BETWEEN.match(self._text, self._at)
            self._at = self._at if found is None else found.end()
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def skip(self, character: str) -> bool:
        """Go behind a character; return False if another one comes next."""
        found = self.peek() == character
        self._at += found
        return found

    def take(self, number: int) -> bytes:
        """Go behind the value that comes next and return its bytes."""
        self.peek()
        while True:
            try:
                end = self._scan(self._text, self._at)[1]
            except (ValueError, RecursionError):
                end = len(self._text)  # it is not complete, or not valid
            if end < len(self._text):
                break
            if end - self._at > _PIECE:
                raise FormatError(f"row {number} is not JSON, is nested too deep or has more than {_PIECE >> 20} MiB")
            if not self._fill():
                break
        raw = self._text[self._at : end].encode("latin-1")
        self._at = end
        return raw

    def _fill(self) -> bool:
        piece = self._file.read(_PIECE).decode("latin-1")
        self._text, self._start, self._at = self._text[self._at :] + piece, self._start + self._at, 0
        if not self._start and self._text.startswith(_MARK):
            self._at = len(_MARK)
        return bool(piece)
