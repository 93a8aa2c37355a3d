"""What every reader of a notation gives: plain data, and the place of anything in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from bespeak.text.source.pointer import parent
from bespeak.text.source.span import Location
from bespeak.text.source.text_position import Lines

Notation = Literal["yaml", "json", "toml", "braces"]

MAX_BYTES: Final = 1 << 24
"""A longer document is refused before it is read."""

MAX_DEPTH: Final = 100
"""Collections inside collections; nobody can read deeper ones, and every walk over the data may recurse this far."""

MAX_NODES: Final = 1_000_000
"""Keys, values, lists and mappings of one document: some hundred megabytes while it is read."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text in characters; the end is the first character after it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Why a text is not in its notation, where, and what to do about it."""

    location: Location
    message: str
    help: str = ""


class Tree(ABC):
    """A document: its data, and the place of anything in it by JSON Pointer."""

    __slots__ = ("_lines", "crlf", "data", "file", "origins", "text")

    notation: ClassVar[Notation]

    def __init__(self, data: Any, text: str, file: str, *, crlf: bool = False) -> None:
        self.data = data
        self.text = text
        """The text that spans count in: without a byte order mark, with plain line feeds."""
        self.file = file
        self.crlf = crlf
        """Whether line feeds were written with carriage returns and are to be written so again."""
        self.origins: dict[str, str] = {}
        """For what `expand_tree` has made: the pointer of the short form each part comes from."""
        self._lines: Lines | None = None

    @abstractmethod
    def _key_span(self, at: str) -> Span | None: ...

    @abstractmethod
    def _value_span(self, at: str) -> Span | None: ...

    def key_span(self, at: str) -> Span | None:
        """Where the key of a pointer stands, or the item of a list."""
        return self._key_span(self._origin(at) if self.origins else at)

    def value_span(self, at: str) -> Span | None:
        """Where the value of a pointer stands, without the blanks and comments after it."""
        return self._value_span(self._origin(at) if self.origins else at)

    def is_made(self, at: str) -> bool:
        """Whether `expand_tree` has made what stands at a pointer: then the text does not say it like this."""
        while self.origins and at:
            if at in self.origins:
                return True
            at = parent(at)
        return False

    def locate(self, at: str, *, key: bool = False) -> Location:
        """The place of a value (or of its key), or the start of the nearest thing above it."""
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
        """The lines and columns of a span."""
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
    """A text as trees hold it: without a byte order mark, with plain line feeds; and whether it had others."""
    text = text.removeprefix("\ufeff")
    if "\r\n" in text:
        return text.replace("\r\n", "\n"), True
    return text, False


def too_long(text: str, file: str) -> SyntaxFault | None:
    """The refusal of a text that is longer than anybody writes."""
    if len(text) <= MAX_BYTES:
        return None
    megabytes = MAX_BYTES >> 20
    return SyntaxFault(Location(file), f"the text is longer than {megabytes} MiB", "Split it into several documents.")
