"""TOML text to plain data that remembers where each key stood.

`tomli` decides what is TOML: `tomllib`, compiled, because ten thousand endpoint files must load while a server starts.
It keeps no positions. The scanner beside it only looks for keys, only in text that has been accepted, and only when
somebody asks for a place: most files have no findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import tomli

from bespeak.source.pointer import child, parent
from bespeak.source.span import Location

MAX_BYTES: Final = 1 << 20
"""A document longer than this was not written by a person."""

_MAX_KEY_PARTS: Final = 64
"""tomli needs quadratic time for `a.a.a...`; nobody nests tables this deep."""

_BARE_OR_QUOTED: Final = r"""[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'"""
_LONG_KEY: Final = rf"(?:(?:{_BARE_OR_QUOTED})[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"
_STRING: Final = r"""
      \"{3}(?:\\.|"{1,2}(?!")|[^"\\])*+"{3,5}     # multi-line; up to two quotes may stand before the closing three
    | '{3}(?:'{1,2}(?!')|[^'])*+'{3,5}
    | "(?:\\.|[^"\\\n])*+"
    | '[^'\n]*+'
"""

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*+)*+")
_SPACE: Final = re.compile(r"[ \t]*+")
_KEY: Final = re.compile(_BARE_OR_QUOTED)
_VALUE_PART: Final = re.compile(
    rf"{_STRING} | \#[^\n]*+ | (?P<open>[\[{{]) | (?P<close>[\]}}]) | (?P<end>\n) | [^\"'\#\[\]{{}}\n]++",
    re.VERBOSE | re.DOTALL,
)
_MAYBE_LONG_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-]){_LONG_KEY}")
_TEXT_PART: Final = re.compile(
    rf"(?P<long>{_LONG_KEY}) | {_STRING} | \#[^\n]*+ | [A-Za-z0-9_-]++ | .", re.VERBOSE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class TomlFault:
    """Why a text is not TOML, and where."""

    location: Location
    message: str


class TomlTree:
    """A TOML document: its data, and the place of anything in it."""

    __slots__ = ("_positions", "_text", "data", "file")

    def __init__(self, data: dict[str, Any], text: str, file: str) -> None:
        self.data = data
        self.file = file
        self._text = text
        self._positions: dict[str, int] | None = None

    def locate(self, at: str) -> Location:
        """Where the key of a pointer stands, or the nearest key above it. Inside a value nothing has its own place."""
        if self._positions is None:
            self._positions = dict(_scan(self._text))
        while at:
            offset = self._positions.get(at)
            if offset is not None:
                return _location(self._text, offset, self.file)
            at = parent(at)
        return Location(self.file)


def parse_toml(text: str, file: str) -> TomlTree | TomlFault:
    """The tree of a TOML text, or why there is none."""
    if len(text) > MAX_BYTES:
        return TomlFault(Location(file), f"the text is longer than {MAX_BYTES} bytes")
    text = text.replace("\r\n", "\n")
    long_key = _find_long_key(text)
    if long_key is not None:
        return TomlFault(_location(text, long_key, file), f"a key has more than {_MAX_KEY_PARTS} parts")
    try:
        return TomlTree(tomli.loads(text), text, file)
    except RecursionError:
        return TomlFault(Location(file), "arrays or tables are nested too deeply")
    except tomli.TOMLDecodeError as error:
        return _fault(error, text, file)
    except ValueError:  # what int() raises for thousands of digits
        return TomlFault(Location(file), "a number has too many digits")


def _find_long_key(text: str) -> int | None:
    """The offset of a key with too many parts. Strings and comments are only told apart where there may be one."""
    if text.count(".") >= _MAX_KEY_PARTS and _MAYBE_LONG_KEY.search(text) is not None:
        for part in _TEXT_PART.finditer(text):
            if part.lastgroup == "long":
                return part.start()
    return None


def _fault(error: tomli.TOMLDecodeError, text: str, file: str) -> TomlFault:
    if error.pos >= len(text):
        return TomlFault(_location(text, len(text), file), f"{error.msg} at the end of the file")
    return TomlFault(Location(file, error.lineno, error.colno), error.msg)


def _location(text: str, offset: int, file: str) -> Location:
    return Location(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _scan(text: str) -> Iterator[tuple[str, int]]:
    """Every key outside of values as (pointer, offset), the first place of each pointer first."""
    seen: set[str] = set()
    newest: dict[str, int] = {}  # index of the newest table in each array of tables
    table = ""
    at = _end(_BLANK, text, 0)
    while at < len(text):
        header = 2 if text.startswith("[[", at) else 1 if text[at] == "[" else 0
        parts, at = _key_parts(text, at + header)
        here = "" if header else table
        for number, (part, offset) in enumerate(parts, 1):
            here = child(here, part)
            if here not in seen:
                seen.add(here)
                yield here, offset
            if header == 2 and number == len(parts):
                newest[here] = newest.get(here, -1) + 1
                yield child(here, newest[here]), offset
            if header and here in newest:
                here = child(here, newest[here])
        if header:
            table = here
            at += header
        else:
            at = _skip_value(text, at)
        at = _end(_BLANK, text, at)


def _key_parts(text: str, at: int) -> tuple[list[tuple[str, int]], int]:
    parts: list[tuple[str, int]] = []
    while True:
        at = _end(_SPACE, text, at)
        match = _KEY.match(text, at)
        if match is None:
            return parts, len(text)
        parts.append((_unquote(match[0]), at))
        at = _end(_SPACE, text, match.end())
        if not text.startswith(".", at):
            return parts, at
        at += 1


def _unquote(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] == '"':
        return str(tomli.loads(f"key = {key}")["key"])
    return key


def _skip_value(text: str, at: int) -> int:
    depth = 0
    for part in _VALUE_PART.finditer(text, at):
        kind = part.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "end" and depth == 0:
            return part.end()
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
