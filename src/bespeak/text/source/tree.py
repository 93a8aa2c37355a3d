"""Document trees: the result of every parser, with the place of each key and value, and changes to them."""

from __future__ import annotations

import gc
import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from bespeak.text.source.pointer import is_index, parent, unescaped


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source: the file and, if known, one-based line and column, and the end."""

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0  # line of the end; 0 if unknown
    end_column: int = 0  # column after the last character, in `end_line`

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Lines:
    """The lines of one text, indexed once. Only a line feed ends a line, as in an editor."""

    __slots__ = ("_file", "_starts")

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._starts = line_starts(text)

    def location(self, start: int, end: int = -1) -> Location:
        line, column = self._place(start)
        if end < start:
            return Location(self._file, line, column)
        return Location(self._file, line, column, *self._place(end))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def line_starts(text: str) -> list[int]:
    return [0, *(feed.end() for feed in re.finditer("\n", text))]


def location_of(text: str, file: str, start: int, end: int = -1) -> Location:
    return Lines(text, file).location(start, end)


def match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of a pattern at an offset, or the offset if it does not match."""
    found = pattern.match(text, at)
    return found.end() if found else at


Notation = Literal["yaml", "json", "toml", "braces", "python"]
MAX_BYTES: Final = 1 << 24  # size limit in bytes; a longer document is refused before it is parsed
MAX_DEPTH: Final = 100  # limit of nesting; every walk over the data may recurse this far
MAX_NODES: Final = 1_000_000  # limit of keys, values and collections: some hundred megabytes to parse


@dataclass(frozen=True, slots=True)
class Span:
    """A span of text in characters; the end is exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A syntax error of a text: reason, place and remedy."""

    location: Location
    message: str
    help: str = ""


class NotationError(Exception):
    """A syntax error inside a parser: the span of the text, the reason, and the remedy. Callers get a `SyntaxFault`."""

    def __init__(self, start: int, end: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message
        self.help = advice

    def fault(self, text: str, file: str) -> SyntaxFault:
        return SyntaxFault(location_of(text, file, self.start, self.end), self.message, self.help)


class Tree(ABC):
    """Plain data of a document, and the place of anything in it by JSON Pointer."""

    __slots__ = ("_lines", "crlf", "data", "file", "origins", "text")

    notation: ClassVar[Notation]

    def __init__(self, data: Any, text: str, file: str, *, crlf: bool = False) -> None:
        self.data = data
        self.text = text  # text that spans refer to: without a byte order mark, with line feeds only
        self.file = file
        self.crlf = crlf  # True if lines ended with CRLF and must be written so again
        self.origins: dict[str, str] = {}  # pointers to the shorthand of each part that `expand_tree` made
        self._lines: Lines | None = None

    @abstractmethod
    def _span(self, at: str, *, key: bool) -> Span | None: ...

    def key_span(self, at: str) -> Span | None:
        """Return the span of a pointer's key, or of a list item."""
        return self._span(self._origin(at) if self.origins else at, key=True)

    def value_span(self, at: str) -> Span | None:
        """Return the span of a pointer's value, without trailing spaces and comments."""
        return self._span(self._origin(at) if self.origins else at, key=False)

    def is_made(self, at: str) -> bool:
        """Return True if `expand_tree` made this node, so the text does not contain it."""
        while self.origins and at:
            if at in self.origins:
                return True
            at = parent(at)
        return False

    def scope_of(self, line: int) -> str | None:
        """Return the pointer of what a comment on this line is about, if it is about more than the line."""
        return None

    def locate(self, at: str, *, key: bool = False) -> Location:
        """Return the location of a value (or of its key), or the start of the nearest node above it."""
        span = (self.key_span(at) if key else None) or self.value_span(at)
        if span is not None and at:
            return self.location(span)
        while at:
            at = parent(at)
            if (span := self.key_span(at) or self.value_span(at)) is not None:
                break
        return self.location(Span(span.start, -1)) if span is not None else Location(self.file, 1, 1)

    def location(self, span: Span) -> Location:
        if self._lines is None:
            self._lines = Lines(self.text, self.file)
        return self._lines.location(span.start, span.end)

    def _origin(self, at: str) -> str:
        above = at
        while above:
            if (origin := self.origins.get(above)) is not None:
                # Below a field there is nothing of its own; below a whole input, names that no text has.
                return origin if origin != above or above == at else at
            above = parent(above)
        return at


def plain(text: str) -> tuple[str, bool]:
    """Normalize text: remove a byte order mark, use line feeds; also return whether lines ended with CRLF."""
    text = text.removeprefix("\ufeff")
    if "\r\n" in text:
        return text.replace("\r\n", "\n"), True
    return text, False


def too_long(text: str, file: str) -> SyntaxFault | None:
    if len(text) <= MAX_BYTES:
        return None
    message = f"the text is longer than {MAX_BYTES >> 20} MiB"
    return SyntaxFault(Location(file), message, "Split it into several documents.")


@dataclass(slots=True, eq=False)
class Place:
    """The place of a key and its value, with the places of its entries or items below it."""

    key: Span | None
    start: int
    end: int = -1
    entries: dict[str, Place] | None = None
    items: list[Place] | None = None

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def entry_span(self) -> Span:
        return Span(self.key.start if self.key else self.start, self.end)

    @property
    def children(self) -> list[Place]:
        return list(self.entries.values()) if self.entries is not None else self.items or []

    def below(self, part: str) -> Place | None:
        """Return the place of an entry or item by an escaped pointer part."""
        if self.entries is not None:
            return self.entries.get(unescaped(part))
        if self.items is not None and is_index(part, self.items):
            return self.items[int(part)]
        return None


class PlacedTree(Tree):
    """A document whose places are computed at first use, unless its parser gives them as `root`."""

    __slots__ = ("_root",)

    scan: ClassVar[staticmethod[[str], Place]]  # computes the place of the whole document, with all others below it

    def __init__(self, data: Any, text: str, file: str, *, crlf: bool = False, root: Place | None = None) -> None:
        super().__init__(data, text, file, crlf=crlf)
        self._root = root

    def place(self, at: str) -> Place | None:
        if self._root is None:
            self._root = self.scan(self.text)
        here: Place | None = self._root
        for part in at.split("/")[1:]:
            if here is None:
                return None
            here = here.below(part)
        return here

    def _span(self, at: str, *, key: bool) -> Span | None:
        found = self.place(at)
        if found is None or (not at if key else found.end < 0):
            return None
        return (key and found.key) or found.span


@dataclass(frozen=True, slots=True)
class Change:
    """An operation at a JSON Pointer. `insert` adds `key` at the end of a mapping, `append` a value to a list."""

    op: Literal["replace", "rename", "remove", "append", "insert"]
    at: str
    value: Any = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement for a span; an empty span is an insertion point."""

    span: Span
    text: str


def insertion(at: int, text: str) -> TextEdit:
    return TextEdit(Span(at, at), text)


def deletion(start: int, end: int) -> TextEdit:
    return TextEdit(Span(start, end), "")


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply the edits. Of two that overlap, only the one that starts first is applied."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        parts += (text[done : edit.span.start], edit.text)
        done = edit.span.end
    parts.append(text[done:])
    return "".join(parts)


_SEEN: Final = 1 << 16  # limit of characters that are read: an endpoint is near the top of a document
_NOT_YAML: Final = re.compile(
    r"""^[ \t]*+(?:
        [A-Za-z][\w-]*+[ \t]++/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+[ \t]*+\{         # BOOK /reservation/{id} {
      | [A-Za-z_][\w-]*+[ \t]*+\{(?!\{)                                               # semantic {
      | (?:input|output)[ \t]*+:[ \t]*+\n[ \t\n]*+[A-Za-z_]\w*+[ \t]*+\(              # output: / status (string)
      | -[ \t]++\w++[ \t]*+\([^():\n]*+:[^()\n]*+\)[ \t]*+$                           # - size (integer, minimum: 1)
    )""",
    re.MULTILINE | re.VERBOSE,
)


def detect_notation(text: str) -> Literal["json", "yaml", "braces"]:
    """Detect JSON by its bracket and brace notation by blocks without a colon; all else is YAML."""
    head = text[:_SEEN].removeprefix("\ufeff").lstrip()
    if head[:1] in {"{", "["}:
        return "json"
    return "braces" if _NOT_YAML.search(head) else "yaml"


WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
NUMERIC: Final = frozenset("0123456789+-.")  # first characters of numbers
MAX_DIGITS: Final = 4000  # limit of digits: int() raises for somewhat more
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class NumberTooLarge(ValueError):
    """A number that JSON parsers do not treat alike."""


def plain_value(text: str) -> Any:
    """Parse a plain scalar. `yes`, `on`, `True`, `1_000`, `12:30` and `2026-01-01` are text."""
    if not text or text[0] not in NUMERIC:
        return WORDS.get(text, text)
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise NumberTooLarge(f"a number has more than {MAX_DIGITS} digits")
        return int(text, 0) if text[1:2] in {"o", "x"} else int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise NumberTooLarge(f"the number {text:.40} is too large")
        return number
    return text


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the garbage collector: parsing makes many objects and no garbage, and collections would triple its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
