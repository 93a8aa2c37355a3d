"""TOML text to plain data with places.

`tomli` decides what is TOML: it is `tomllib`, compiled, because ten thousand endpoint files must load while a server
starts. It keeps no positions. The scanner beside it reads only valid text, and only when a place is needed: most files
have no findings.
"""

from __future__ import annotations

import re
from typing import Final

import tomli

from bespeak.text.source.places import Place, PlacedTree
from bespeak.text.source.span import Location
from bespeak.text.source.text_position import location_of
from bespeak.text.source.toml_places import KEY, STRING, scan
from bespeak.text.source.tree import Span, SyntaxFault

MAX_BYTES: Final = 1 << 20
"""Size limit: longer documents are not written by people."""

_MAX_KEY_PARTS: Final = 64
"""Limit of parts in a dotted key: tomli needs quadratic time for `a.a.a...`."""

_LONG_KEY: Final = rf"(?:(?:{KEY})[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"
_MAYBE_LONG_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-]){_LONG_KEY}")
_TEXT_PART: Final = re.compile(
    rf"(?P<long>{_LONG_KEY}) | {STRING} | \#[^\n]*+ | [A-Za-z0-9_-]++ | .", re.VERBOSE | re.DOTALL
)


class TomlTree(PlacedTree):
    """A TOML document."""

    __slots__ = ()

    notation = "toml"

    def places(self) -> Place:
        return scan(self.text)

    def locate(self, at: str, *, key: bool = False) -> Location:
        """Return the location of a pointer's key, or of the nearest key above it that is not inside a value."""
        if key:
            return super().locate(at, key=True)
        found: Span | None = None
        here = self.place("")
        for part in at.split("/")[1:]:
            here = here.below(part) if here is not None else None
            if here is None:
                break
            found = here.key or found
            if here.end >= 0:
                break
        return Location(self.file) if found is None else self.location(Span(found.start, -1))


def parse_toml(text: str, file: str) -> TomlTree | SyntaxFault:
    """Parse TOML text; return a Fault if it is not valid."""
    if len(text) > MAX_BYTES:
        return SyntaxFault(Location(file), f"the text is longer than {MAX_BYTES} bytes")
    crlf = "\r\n" in text
    text = text.replace("\r\n", "\n")
    long_key = _find_long_key(text)
    if long_key is not None:
        return SyntaxFault(location_of(text, file, long_key), f"a key has more than {_MAX_KEY_PARTS} parts")
    try:
        return TomlTree(tomli.loads(text), text, file, crlf=crlf)
    except RecursionError:
        return SyntaxFault(Location(file), "arrays or tables are nested too deeply")
    except tomli.TOMLDecodeError as error:
        return _fault(error, text, file)
    except ValueError:  # what int() raises for thousands of digits
        return SyntaxFault(Location(file), "a number has too many digits")


def _find_long_key(text: str) -> int | None:
    """Return the offset of a key with too many parts. Strings and comments are recognized only where there may be
    one.
    """
    if text.count(".") >= _MAX_KEY_PARTS and _MAYBE_LONG_KEY.search(text) is not None:
        for part in _TEXT_PART.finditer(text):
            if part.lastgroup == "long":
                return part.start()
    return None


def _fault(error: tomli.TOMLDecodeError, text: str, file: str) -> SyntaxFault:
    if error.pos >= len(text):
        return SyntaxFault(location_of(text, file, len(text)), f"{error.msg} at the end of the file")
    return SyntaxFault(Location(file, error.lineno, error.colno), error.msg)
