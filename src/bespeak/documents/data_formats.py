"""Plain data in the formats that agents exchange: JSON, JSON Lines, YAML, CSV, XML and TOML, read strictly in bounds.

Nothing is guessed: cells and XML texts stay texts, and what a format cannot express is an error instead of a loss.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from functools import lru_cache
from typing import Any, BinaryIO, Final
from xml.parsers import expat  # entities and DTDs are refused
from xml.sax.saxutils import escape, quoteattr

import msgspec

from bespeak.documents.toml_text import find_null, toml_text
from bespeak.documents.yaml_text import yaml_text
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import MAX_BYTES, MAX_DEPTH, MAX_NODES, SyntaxFault
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "yaml": "application/yaml",
    "csv": "text/csv",
    "xml": "application/xml",
    "toml": "application/toml",
}
_MOST_ROWS: Final = 100_000
_MOST_COLUMNS: Final = 10_000
_LONGEST_LINE: Final = 1 << 20  # bytes
_FIELD: Final = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n]*+))(,|\Z)')
_OPEN: Final = re.compile(r'(?:(?:"[^"]*+(?:""[^"]*+)*+"|[^",\r\n]*+),)*+"[^"]*+(?:""[^"]*+)*+')  # up to an open quote
_FORMULA: Final = re.compile(r"[=@\t\r]|[-+](?![0-9]+(?:[.,][0-9]+)*\Z)")  # the start of one; -5 is only a number
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_NAME: Final = re.compile(r"[\s<>&/=\"'!?]")


class FormatError(Exception):
    """A text that is not in its format, or data that a format cannot express; `line` is 0 if it is not known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line
        self.reason = message


def read_data(source: str | bytes, form: str) -> Any:
    """Read a text in one of the formats into data that JSON can express. Raises FormatError."""
    try:
        text = source if isinstance(source, str) else source.decode()
        text.encode()
    except UnicodeError:
        raise FormatError("the text is not UTF-8") from None
    if len(text) > MAX_BYTES:
        raise FormatError(f"the text is longer than {MAX_BYTES >> 20} MiB")
    return plain(_READERS[form](text.removeprefix("\ufeff")), 0)


def write_data(data: Any, form: str) -> str:
    """Write data that JSON can express in one of the formats. Raises FormatError."""
    return _WRITERS[form](data)


def plain(value: Any, depth: int) -> Any:
    """Return data with only what JSON has: times become texts, and numbers that it lacks are refused."""
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        raise FormatError(f"the data is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {name: plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise FormatError(f"the number {value} has no form in JSON")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise FormatError(f"the number {str(value)[:20]}... has more than 64 bits; write it as a text")
    return value


def _tree(read: Callable[[str, str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        tree = read(text, "")
        if isinstance(tree, SyntaxFault):
            raise FormatError(tree.message, tree.location.line or 0)
        if isinstance(tree, YamlTree) and tree.has_aliases:
            raise FormatError("the document has aliases; write their values out")
        return tree.data

    return parse


def _read_lines(text: str) -> list[Any]:
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _check_rows(len(values), number)
            tree = parse_json(line, "")
            if isinstance(tree, SyntaxFault):
                raise FormatError(tree.message, number)
            values.append(tree.data)
    return values


def _check_rows(count: int, line: int) -> None:
    if count >= _MOST_ROWS:
        raise FormatError(f"the text has more than {_MOST_ROWS:,} rows", line)


def _read_csv(text: str) -> list[Any]:
    rows: list[Any] = []
    for line, row in LineReader(io.BytesIO(text.encode()), "csv"):
        if isinstance(row, FormatError):
            raise row
        _check_rows(len(rows), line)
        rows.append(row)
    return rows


class LineReader:
    """Reads rows of CSV, or of JSON Lines, from a file in bounded memory: each with its line, or with its fault.

    After each row, `line` and the position of the file are where another reader with the same `names` goes on.
    """

    def __init__(self, file: BinaryIO, form: str, line: int = 0, names: Sequence[str] = ()) -> None:
        self.line = line  # number of the last line that was read
        self.names = list(names)  # columns of CSV, which its first line tells
        self._file = file
        self._is_json = form == "jsonl"

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield rows. A FormatError in the place of one is its fault; raises FormatError if the rest has no meaning."""
        while True:
            begun = self.line + 1
            try:
                raw = self._read_line()
                if not raw:
                    return
                if raw.isspace() and (self._is_json or not raw.strip(b"\r\n")):
                    continue
                row = read_json_row(raw, begun) if self._is_json else self._parse_csv(raw, begun)
            except _UnclosedError:
                raise
            except UnicodeDecodeError:
                row = FormatError("it is not UTF-8", begun)
            except FormatError as error:
                row = error
            if not self._is_json and not self.names:
                if isinstance(row, FormatError):
                    raise row
                self.names = check_names(row, begun)
            else:
                yield begun, row

    def _read_line(self) -> bytes:
        raw = self._file.readline(_LONGEST_LINE)
        self.line += 1
        if len(raw) == _LONGEST_LINE and raw[-1:] != b"\n":
            while (rest := self._file.readline(_LONGEST_LINE)) and rest[-1:] != b"\n":
                pass
            raise FormatError(f"the line has more than {_LONGEST_LINE >> 20} MiB", self.line)
        return raw if self.line > 1 else raw.removeprefix(b"\xef\xbb\xbf") or b"\n" if raw else raw

    def _parse_csv(self, raw: bytes, line: int) -> Any:
        """Return the cells by their names. The module `csv` cannot do this: it takes quotes inside cells for text."""
        if b'"' in raw:
            cells = self._split_quoted(raw, line)
        else:
            text = raw.decode().removesuffix("\n").removesuffix("\r")
            if "\r" in text:
                raise FormatError("a carriage return stands alone; end lines with LF or CR LF", line)
            cells = text.split(",")
        if not self.names:
            return cells
        if len(cells) != len(self.names):
            raise FormatError(f"the row has {len(cells)} cells, but there are {len(self.names)} columns", line)
        return dict(zip(self.names, cells, strict=True))

    def _split_quoted(self, raw: bytes, line: int) -> list[str]:
        if raw.count(b'"') % 2 and _OPEN.fullmatch(raw.decode()):
            parts, size, is_open = [raw], len(raw), True
            while is_open:
                try:
                    part = self._read_line()
                except FormatError:
                    part = b""
                size += len(part)
                if not part or size > _LONGEST_LINE:
                    raise _UnclosedError("a quote mark is opened here and is not closed in the next MiB", line)
                is_open = part.count(b'"') % 2 == 0
                parts.append(part)
            raw = b"".join(parts)
        text = raw.decode().removesuffix("\n").removesuffix("\r")
        cells, at = [], 0
        while (found := _FIELD.match(text, at)) is not None:
            quoted, bare, end = found.groups()
            cells.append(bare if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            if not end:
                return cells
        raise FormatError("a quote mark stands inside a cell without quotes, or a closed one is followed by text", line)


class _UnclosedError(FormatError):
    """A quote mark that is not closed: what follows has no meaning."""


def read_json_row(raw: bytes, number: int) -> Any:
    """Read one value that JSON Lines or a list of JSON has. Raises FormatError."""
    try:
        return plain(msgspec.json.decode(raw), 0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"it is not JSON: {str(error)[:200]}", number) from None


def check_names(names: list[str], line: int = 0) -> list[str]:
    if "" in names:
        raise FormatError(f"column {names.index('') + 1} has no name", line)
    if len(names) > _MOST_COLUMNS:
        raise FormatError(f"there are more than {_MOST_COLUMNS:,} columns", line)
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise FormatError(f"the column {twice[:80]!r} is there twice", line)
    return names


def _read_xml(text: str) -> dict[str, Any]:
    """Read elements as objects: attributes as `@name`, text as `#text`, and repeated elements as lists."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    root: dict[str, Any] = {}
    above: list[tuple[dict[str, str], dict[str, Any], list[str]]] = [({}, root, [])]
    count = 0

    def refuse(*_: Any) -> None:
        raise FormatError("a document type (DOCTYPE) is not read; remove it", parser.CurrentLineNumber)

    def start(_: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1 + len(attributes)
        if len(above) > MAX_DEPTH or count > MAX_NODES:
            most = f"nested more than {MAX_DEPTH} levels deep" if len(above) > MAX_DEPTH else f"more than {MAX_NODES:,}"
            raise FormatError(f"the elements are {most}", parser.CurrentLineNumber)
        above.append(({f"@{name}": value for name, value in attributes.items()}, {}, []))

    def end(name: str) -> None:
        attributes, inside, texts = above.pop()
        said = "".join(texts)
        value: Any = {**attributes, **inside}
        if inside and said.strip():
            raise FormatError(f"the element {name[:80]} has text beside its elements", parser.CurrentLineNumber)
        if not inside:
            value = ({**attributes, "#text": said} if said else attributes) if attributes else said
        siblings = above[-1][1]
        if name not in siblings:
            siblings[name] = value
        elif isinstance(siblings[name], list):
            siblings[name].append(value)
        else:
            siblings[name] = [siblings[name], value]

    def say(text: str) -> None:
        above[-1][2].append(text)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = say
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise FormatError(f"this is not XML: {expat.ErrorString(error.code)}", error.lineno) from None
    return root


def _rows(data: Any, form: str) -> list[Any]:
    rows = data if isinstance(data, list) else [data]
    if form == "CSV" and not all(isinstance(row, Mapping) for row in rows):
        raise FormatError("CSV has rows with named columns; the data has something else")
    return rows


def _write_csv(data: Any) -> str:
    rows = _rows(data, "CSV")
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if names:
        writer.writerow(check_names([_cell(name) for name in names]))
    for row in rows if names else ():
        writer.writerow([_cell(row.get(name)) for name in names])
    return text.getvalue()


def _cell(value: Any) -> str:
    """Return a value as a cell of a table. A text that a spreadsheet would run as a formula gets a quote mark."""
    if isinstance(value, str):
        return f"'{value}" if _FORMULA.match(value) else value
    return "" if value is None else msgspec.json.encode(value).decode()


def _write_toml(data: Any) -> str:
    table = data if isinstance(data, Mapping) else {"rows": data}
    null = find_null(table)
    if null is not None:
        raise FormatError(f"TOML has no null, which is at {null[:200]}")
    tables = isinstance(data, list) and bool(data) and all(isinstance(row, Mapping) for row in data)
    return toml_text(table, sections=("rows",) if tables else ())


def _write_xml(data: Any) -> str:
    """Write an object with one member as the element of that name; others get the element `data`, rows `rows`."""
    if isinstance(data, list):
        data = {"rows": {"row": data}}
    elif not isinstance(data, Mapping) or len(data) != 1 or isinstance(next(iter(data.values())), list):
        data = {"data": data}
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    for name, value in data.items():
        _write_element(name, value, parts)
    return "".join(parts) + "\n"


def _write_element(name: str, value: Any, parts: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list):
                raise FormatError(f"XML has no lists of lists, and {name[:80]!r} is one")
            _write_element(name, item, parts)
        return
    parts.append(f"<{_xml_name(name)}")
    if not isinstance(value, Mapping):
        parts.append(f">{escape(_xml_text(value), _RETURN)}</{name}>")
        return
    for key, item in value.items():
        if key.startswith("@"):
            parts.append(f" {_xml_name(key[1:])}={quoteattr(_xml_text(item))}")
    parts.append(f">{escape(_xml_text(value.get('#text')), _RETURN)}")
    for key, item in value.items():
        if not key.startswith("@") and key != "#text":
            _write_element(key, item, parts)
    parts.append(f"</{name}>")


_RETURN: Final = {"\r": "&#13;"}  # readers turn the character itself into a line feed


@lru_cache(maxsize=1024)
def _xml_name(name: str) -> str:
    try:
        if not _NO_NAME.search(name):
            expat.ParserCreate("utf-8").Parse(f"<{name}/>".encode(), True)
            return name
    except (expat.ExpatError, UnicodeError):
        pass
    raise FormatError(f"XML has no elements or attributes with the name {name[:80]!r}")


def _xml_text(value: Any) -> str:
    if isinstance(value, Mapping | list):
        raise FormatError("XML has only texts in attributes and `#text`; the data has an object or a list there")
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    if _NOT_XML.search(text):
        raise FormatError(f"XML has no control characters; the text {text[:40]!r} has one")
    return text


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "json": _tree(parse_json),
    "jsonl": _read_lines,
    "yaml": _tree(parse_yaml),
    "csv": _read_csv,
    "xml": _read_xml,
    "toml": _tree(parse_toml),
}
_WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "json": lambda data: msgspec.json.encode(data).decode(),
    "jsonl": lambda data: "".join(msgspec.json.encode(row).decode() + "\n" for row in _rows(data, "JSON Lines")),
    "yaml": yaml_text,
    "csv": _write_csv,
    "xml": _write_xml,
    "toml": _write_toml,
}
