"""The places of keys and values in valid TOML text, by one pass over it."""

from __future__ import annotations

import re
from typing import Final

import tomli

from bespeak.text.source.places import Place
from bespeak.text.source.text_position import match_end
from bespeak.text.source.tree import Span

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*+)*+")
_BETWEEN: Final = re.compile(r"(?:[ \t\n,]|#[^\n]*+)*+")
_SPACE: Final = re.compile(r"[ \t]*+")
KEY: Final = r"""[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'"""
"""Pattern of a bare or quoted key."""
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
    root = _table(None)
    table = root
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
    for number, (name, span) in enumerate(parts, 1):
        if table.entries is None:
            table.entries = {}
        table = table.entries.setdefault(name, Place(span, -1))
        if is_item and number == len(parts):
            if table.items is None:
                table.items = []
            table.items.append(_table(span))
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
        if text[at : at + 1] == "[":
            place.items = []
            around.append(place)
            at += 1
        elif text[at : at + 1] == "{":
            place.entries = {}
            around.append(place)
            at += 1
        else:
            at = place.end = _scalar_end(text, at)
        while around:
            at = match_end(_BETWEEN, text, at)
            if at >= len(text):
                return at
            if text[at] not in "]}":
                break
            at = around.pop().end = at + 1
        if not around:
            return at
        items = around[-1].items
        if items is not None:
            place = Place(None, at)
            items.append(place)
        else:
            parts, at = _key_parts(text, at)
            place = _enter(around[-1], parts)
            at = match_end(_SPACE, text, at + 1)


def _scalar_end(text: str, at: int) -> int:
    found = _SCALAR.match(text, at)
    return at + len(found[0].rstrip()) if found else at


def _key_parts(text: str, at: int) -> tuple[list[tuple[str, Span]], int]:
    parts: list[tuple[str, Span]] = []
    while True:
        at = match_end(_SPACE, text, at)
        match = _KEY.match(text, at)
        if match is None:
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


def _table(key: Span | None) -> Place:
    place = Place(key, -1)
    place.entries = {}
    return place
