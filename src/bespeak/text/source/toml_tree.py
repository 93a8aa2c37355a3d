"""TOML text to plain data, with the places of keys and values, and its comments.

`tomli` is `tomllib`, compiled: ten thousand endpoint files must load at the start. It keeps no positions, so a scanner
reads valid text again when a place is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import tomli

from bespeak.text.source.tree import Location, Place, PlacedTree, Span, SyntaxFault, location_of, match_end

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*+)*+")
_BETWEEN: Final = re.compile(r"(?:[ \t\n,]|#[^\n]*+)*+")
_SPACE: Final = re.compile(r"[ \t]*+")
KEY: Final = r"""[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'"""  # pattern of a bare or quoted key
STRING: Final = r"""
      \"{3}(?:\\.|"{1,2}(?!")|[^"\\])*+"{3,5}     # multi-line; up to two quotes may stand before the closing three
    | '{3}(?:'{1,2}(?!')|[^'])*+'{3,5}
    | "(?:\\.|[^"\\\n])*+"
    | '[^'\n]*+'
"""
"""Pattern of a string in any of the four quotes, for VERBOSE and DOTALL."""
_KEY: Final = re.compile(KEY)
_SCALAR: Final = re.compile(rf"{STRING} | [^,\]}}\#\n]*+", re.VERBOSE | re.DOTALL)


def scan(text: str) -> Place:
    """Return the place of the whole document. A table with a header has the place of its key and no value."""
    root = table = Place(None, -1, entries={})
    at = match_end(_BLANK, text, 0)
    while at < len(text):
        header = 2 if text.startswith("[[", at) else 1 if text[at] == "[" else 0
        parts, at = _key_parts(text, at + header)
        if header:
            table = _header(root, parts, is_item=header == 2)
            at += header
        else:
            at = match_end(_SPACE, text, at + 1)
            at = _value(text, at, _enter(table, parts))
        at = match_end(_BLANK, text, at)
    return root


def _header(root: Place, parts: list[tuple[str, Span]], *, is_item: bool) -> Place:
    table = root
    for number, part in enumerate(parts, 1):
        table = _enter(table, [part])
        if is_item and number == len(parts):
            if table.items is None:
                table.items = []
            table.items.append(Place(part[1], -1, entries={}))
        if table.items:
            table = table.items[-1]
    if table.entries is None:
        table.entries = {}
    return table


def _enter(table: Place, parts: list[tuple[str, Span]]) -> Place:
    """Return the place of a new key; the tables of a dotted key are created."""
    for name, span in parts:
        if table.entries is None:
            table.entries = {}
        table = table.entries.setdefault(name, Place(span, -1))
    return table


def _value(text: str, at: int, place: Place) -> int:
    """Parse the value that starts here into its place and return its end."""
    around: list[Place] = []
    while True:
        place.start = at
        opening = text[at : at + 1]
        if opening in ("[", "{"):
            place.entries, place.items = ({}, None) if opening == "{" else (None, [])
            around.append(place)
            at += 1
        else:
            found = _SCALAR.match(text, at)
            at = place.end = at + len(found[0].rstrip()) if found else at
        while around:
            at = match_end(_BETWEEN, text, at)
            if at >= len(text):
                return at
            if text[at] not in "]}":
                break
            at = around.pop().end = at + 1
        if not around:
            return at
        if (items := around[-1].items) is not None:
            place = Place(None, at)
            items.append(place)
        else:
            parts, at = _key_parts(text, at)
            place = _enter(around[-1], parts)
            at = match_end(_SPACE, text, at + 1)


def _key_parts(text: str, at: int) -> tuple[list[tuple[str, Span]], int]:
    parts: list[tuple[str, Span]] = []
    while True:
        at = match_end(_SPACE, text, at)
        if (match := _KEY.match(text, at)) is None:
            return parts, len(text)
        parts.append((_unquote(match[0]), Span(at, match.end())))
        at = match_end(_SPACE, text, match.end())
        if not text.startswith(".", at):
            return parts, at
        at += 1


def _unquote(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] == '"':
        return str(tomli.loads(f"key = {key}")["key"])
    return key


MAX_BYTES: Final = 1 << 20  # size limit: longer documents are not written by people
_MAX_KEY_PARTS: Final = 64  # limit of parts in a dotted key: tomli needs quadratic time for `a.a.a...`
_LONG_KEY: Final = rf"(?:(?:{KEY})[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"
_MAYBE_LONG_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-]){_LONG_KEY}")
_TEXT_PART: Final = re.compile(
    rf"(?P<long>{_LONG_KEY}) | {STRING} | \#[^\n]*+ | [A-Za-z0-9_-]++ | .", re.VERBOSE | re.DOTALL
)


class TomlTree(PlacedTree):
    """A TOML document."""

    __slots__ = ()

    notation = "toml"
    scan = staticmethod(scan)

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
    if len(text) > MAX_BYTES:
        return SyntaxFault(Location(file), f"the text is longer than {MAX_BYTES} bytes")
    crlf = "\r\n" in text
    text = text.replace("\r\n", "\n")
    if (long_key := _find_long_key(text)) is not None:
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
    """Return the offset of a key with too many parts, which is outside of strings and comments."""
    if text.count(".") >= _MAX_KEY_PARTS and _MAYBE_LONG_KEY.search(text) is not None:
        return next((part.start() for part in _TEXT_PART.finditer(text) if part.lastgroup == "long"), None)
    return None


def _fault(error: tomli.TOMLDecodeError, text: str, file: str) -> SyntaxFault:
    if error.pos >= len(text):
        return SyntaxFault(location_of(text, file, len(text)), f"{error.msg} at the end of the file")
    return SyntaxFault(Location(file, error.lineno, error.colno), error.msg)


_PART: Final = re.compile(rf"""{STRING} | (?P<comment>\#[^\n]*+) | [^"'\#]++ | .""", re.VERBOSE | re.DOTALL)


def toml_comments(text: str) -> Iterator[Span]:
    """Yield the place of each comment in valid TOML, from its `#` to the end of the line."""
    for part in _PART.finditer(text):
        if part.lastgroup == "comment":
            yield Span(part.start(), part.end())
