"""The result of every parser: plain data, and the place of anything in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from bespeak.text.source.pointer import parent
from bespeak.text.source.span import Location
from bespeak.text.source.text_position import Lines, location_of

Notation = Literal["yaml", "json", "toml", "braces", "python"]

MAX_BYTES: Final = 1 << 24
"""Size limit in bytes; a longer document is refused before it is parsed."""

MAX_DEPTH: Final = 100
"""Limit of nesting; every walk over the data may recurse this far."""

MAX_NODES: Final = 1_000_000
"""Limit of keys, values, lists and mappings in one document: some hundred megabytes while it is parsed."""


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
        """Return the error with its place in a file."""
        return SyntaxFault(location_of(text, file, self.start, self.end), self.message, self.help)


class Tree(ABC):
    """Plain data of a document, and the place of anything in it by JSON Pointer."""

    __slots__ = ("_lines", "crlf", "data", "file", "origins", "text")

    notation: ClassVar[Notation]

    def __init__(self, data: Any, text: str, file: str, *, crlf: bool = False) -> None:
        self.data = data
        self.text = text
        """Text that spans refer to: without a byte order mark, with line feeds only."""
        self.file = file
        self.crlf = crlf
        """True if lines ended with CRLF and must be written so again."""
        self.origins: dict[str, str] = {}
        """Pointers to the shorthand of each part that `expand_tree` made."""
        self._lines: Lines | None = None

    @abstractmethod
    def _key_span(self, at: str) -> Span | None: ...

    @abstractmethod
    def _value_span(self, at: str) -> Span | None: ...

    def key_span(self, at: str) -> Span | None:
        """Return the span of a pointer's key, or of a list item."""
        return self._key_span(self._origin(at) if self.origins else at)

    def value_span(self, at: str) -> Span | None:
        """Return the span of a pointer's value, without trailing spaces and comments."""
        return self._value_span(self._origin(at) if self.origins else at)

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
            span = self.key_span(at) or self.value_span(at)
            if span is not None:
                break
        return self.location(Span(span.start, -1)) if span is not None else Location(self.file, 1, 1)

    def location(self, span: Span) -> Location:
        """Return the lines and columns of a span."""
        if self._lines is None:
            self._lines = Lines(self.text, self.file)
        return self._lines.location(span.start, span.end)

    def _origin(self, at: str) -> str:
        above = at
        while above:
            origin = self.origins.get(above)
            if origin is not None:
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
    """Return the Fault for a text that is too long."""
    if len(text) <= MAX_BYTES:
        return None
    megabytes = MAX_BYTES >> 20
    return SyntaxFault(Location(file), f"the text is longer than {megabytes} MiB", "Split it into several documents.")
