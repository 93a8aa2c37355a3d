"""Values in brace notation: quoted text, lists in brackets, and plain text up to the end of its line."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.text.source.places import Place
from bespeak.text.source.scalar import TooLarge, plain_value
from bespeak.text.source.text_position import match_end
from bespeak.text.source.tree import MAX_DEPTH, NotationError

BLANK: Final = re.compile(r"(?:\s++|\#[^\n]*+|\.\.\.(?=\s|$|[,}\]]))*+")
"""Ignored text: spaces, comments, and the draft's three dots for omissions."""

_SPACE: Final = re.compile(r"[ \t]*+")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_SINGLE: Final = re.compile(r"'((?:[^']|'')*+)'")
_FOLD: Final = re.compile(r"[ \t]*+\n\s*+")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\n\s*|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_LINE_REST: Final = re.compile(r"[ \t]*+(?:#[^\n]*+)?(?=\n|$|[,}\]])")
_LINE_PART: Final = re.compile(r"[{}\[\](),\n]|[ \t]#")
_PART: Final = re.compile(r"""[^,()\[\]{}"'\n]++|"(?:[^"\\\n]|\\[^\n])*+"|.""", re.DOTALL)
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


def quoted(text: str, at: int) -> tuple[str, int] | None:
    """Parse quoted text that fills its line; line breaks inside become one space."""
    found = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at)
    alone = found is not None and _LINE_REST.match(text, found.end())
    if found is None or (not alone and "\n" in found[0]):  # the next quote opens another text
        raise NotationError(at, at + 1, "a quoted text is not closed", "Write the closing quote.")
    if not alone:
        return None
    inside = _FOLD.sub(" ", found[1])
    if text[at] == "'":
        return inside.replace("''", "'"), found.end()
    return (_ESCAPE.sub(_unescape, inside) if "\\" in inside else inside), found.end()


def scalar(text: str, start: int, end: int) -> tuple[Any, Place]:
    """Parse plain text into a typed value."""
    written = " ".join(text[start:end].split())
    try:
        return plain_value(written), Place(None, start, end)
    except TooLarge as reason:
        raise NotationError(start, end, str(reason), "Write it in quotes if it is a text.") from None


def bracketed(text: str, at: int, depth: int) -> tuple[list[Any], Place]:
    """Parse the list that starts here; items with types in parentheses stay text."""
    if depth > MAX_DEPTH:
        raise NotationError(at, at + 1, f"lists are nested more than {MAX_DEPTH} levels deep", "Write fewer brackets.")
    place = Place(None, at)
    place.items = []
    items: list[Any] = []
    here = at + 1
    while True:
        here = match_end(BLANK, text, here)
        char = text[here : here + 1]
        if char == "":
            raise NotationError(at, at + 1, "a list in brackets is not closed", "Write the closing bracket.")
        if char == "]":
            place.end = here + 1
            return items, place
        if char == ",":
            here += 1
            continue
        item, below = _item(text, here, depth)
        if below.end <= here:
            raise NotationError(here, here + 1, f"{char!r} cannot stand here", "Remove it, or put the text in quotes.")
        items.append(item)
        place.items.append(below)
        here = below.end


def _item(text: str, at: int, depth: int) -> tuple[Any, Place]:
    if text[at] == "[":
        return bracketed(text, at, depth + 1)
    if text[at] in "\"'":
        found = quoted(text, at)
        if found is not None:
            return found[0], Place(None, at, found[1])
    end = part_end(text, at, "]", lines=True)
    return scalar(text, at, end)


def part_end(text: str, at: int, closing: str, *, lines: bool) -> int:
    """Return the end of a plain item: a comma, a closing bracket, or a line end outside of brackets."""
    expected: list[str] = []
    last = at
    for found in _PART.finditer(text, at):
        part = found[0]
        if part in _OPENING:
            expected.append(_OPENING[part])
        elif expected and part == expected[-1]:
            expected.pop()
        elif part == "\n":
            if not lines and not expected:
                break
            continue
        elif part in closing or (part == "," and not expected):
            break
        if not part.isspace():
            last = found.end()
    return last - (len(text[at:last]) - len(text[at:last].rstrip()))


def plain_line(text: str, at: int, *, inline: bool) -> int:
    """Return the end of a plain value: the line end, a comment, or the closing brace of its block."""
    depth = 0
    end = len(text)
    for found in _LINE_PART.finditer(text, at):
        part = found[0]
        if part in _OPENING:
            depth += 1
            continue
        if part in "])}":
            depth -= 1
        if part[-1] in "\n#" or (part == "}" and depth < 0) or (part == "," and inline and depth <= 0):
            end = found.start()
            break
    return at + len(text[at:end].rstrip())


def ends_line(text: str, at: int) -> bool:
    """Return True if only spaces, a comment or the end of a block follow on the line."""
    return _LINE_REST.match(text, at) is not None


def after_space(text: str, at: int) -> int:
    """Return the next non-space character on the same line."""
    return match_end(_SPACE, text, at)


def _unescape(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:], 16)
        return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"
    return "" if escape[0] == "\n" else _ESCAPES.get(escape, escape)
