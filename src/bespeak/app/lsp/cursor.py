"""The context of the cursor: word, place in the document, or comment. Works on broken documents in every notation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lsprotocol.types import Position, PositionEncodingKind, Range

from bespeak.text.diagnostics.report import Replacement
from bespeak.text.source.tree import Location, Notation, Span, TextEdit, detect_notation, line_starts

ITEM: Final = "[]"  # path segment for any item of a list

_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\\n]++|\\.)*+"?+|'[^'\n]*+'?+)
      | (?P<comment>(?<!\S)\#[^\n]*+)
      | (?P<mark>[{}\[\],:=])
      | (?P<word>[^\s{}\[\],:="'\#]++|\#)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """The place of a word: the names and lists that lead to it, and its role."""

    path: tuple[str, ...]
    is_key: bool  # True for a key of the mapping at the path, False for the value at the path


def flow_place(text: str, start: int, offset: int) -> CursorPlace | None:
    """Return the place of an offset inside the bracket that opens at `start`; None if it is closed earlier."""
    # For each open bracket: its kind, and in a mapping the key of the next value.
    frames: list[tuple[str, str | None]] = []
    last = ""
    for token in _TOKEN.finditer(text, start, offset):
        kind, said = token.lastgroup, token[0]
        if kind in ("text", "word"):
            last = said.strip("\"'")
        elif said in ("{", "["):
            frames.append((said, None))
        elif said in ("}", "]"):
            if frames:
                frames.pop()
            if not frames:
                return None
        elif kind == "mark" and frames and frames[-1][0] == "{":
            frames[-1] = ("{", None if said == "," else last)
    if not frames:
        return None
    steps = [ITEM if kind == "[" else key for kind, key in frames]
    path = tuple(step for step in steps if step is not None)
    return CursorPlace(path, is_key=frames[-1][0] == "[" or frames[-1][1] is None)


_BRACE_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\\n]++|\\.)*+"?+)
      | (?P<comment>(?<!\S)\#[^\n]*+)
      | (?:^|(?<=[{,;\s]))[ \t]*+[A-Za-z][\w-]*+[ \t]++/(?P<endpoint>[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+)\s*+\{
      | (?P<block>[A-Za-z_][\w-]*+)[ \t]*+\{
      | (?P<template>/[^\s{}]*+\{[^\s{}]*+\})
      | (?P<close>\})
      | (?P<open>\{)""",
    re.VERBOSE | re.MULTILINE,
)
_KEY: Final = re.compile(r"[ \t]*+(?P<dash>-[ \t]++)?(?P<key>[A-Za-z_][\w-]*+)[ \t]*+:(?:[ \t]++|$)(?P<rest>.*+)")
_LIST_KEY: Final = re.compile(r"[ \t]*+(?P<key>[A-Za-z_][\w-]*+)[ \t]*+:[ \t]*+$")


def brace_place(text: str, offset: int) -> CursorPlace:
    path = _blocks(text, offset)
    start = text.rfind("\n", 0, offset) + 1
    start = max(start, text.rfind("{", start, offset) + 1)  # a block may open and continue on one line
    line = text[start:offset]
    assigned = _KEY.match(line)
    if assigned is not None:
        key_path = (*path, assigned["key"])
        if assigned["rest"][:1] == "[":
            inside = flow_place(text, start + assigned.start("rest"), offset)
            if inside is not None:
                return CursorPlace(key_path + inside.path, inside.is_key)
        return CursorPlace(key_path, is_key=False)
    if line.lstrip().startswith("-"):
        return CursorPlace((*path, *_list_above(text, start), ITEM), is_key=True)
    return CursorPlace(path, is_key=True)


def _blocks(text: str, offset: int) -> tuple[str, ...]:
    """Return the names of the blocks that are open at an offset."""
    blocks: list[tuple[str, ...]] = []
    for token in _BRACE_TOKEN.finditer(text, 0, offset):
        kind = token.lastgroup
        if kind == "endpoint":
            blocks.append(("endpoints", ITEM))
        elif kind == "block":
            blocks.append((token["block"],))
        elif kind == "open":
            blocks.append(())
        elif kind == "close" and blocks:
            blocks.pop()
    return tuple(name for block in blocks for name in block)


def _list_above(text: str, start: int) -> tuple[str, ...]:
    """Return the key of the list whose items have dashes, if it is on a line above them."""
    for _, line in _upwards(text, start):
        key = _LIST_KEY.match(line)
        if key is not None:
            return (key["key"],)
        if line.strip() and not line.lstrip().startswith("-"):
            break
    return ()


_HEADER: Final = re.compile(r"^[ \t]*+(?P<open>\[\[?+)(?P<name>[^\[\]\n#]++)\]", re.MULTILINE)
_TOML_KEY: Final = re.compile(r"[ \t]*+(?P<key>[\w.\"'-]++)[ \t]*+=[ \t]*+(?P<rest>.*+)")
_PART: Final = re.compile(r"\"([^\"]*+)\"|'([^']*+)'|([\w-]++)")
_VALUE_LINES: Final = 200  # number of lines above in which the key of an open bracket is searched


def toml_place(text: str, offset: int) -> CursorPlace | None:
    """Return the place of an offset; None inside a header."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset]
    if line.lstrip().startswith("["):
        return None
    header = _header(text, start)
    inside = _in_brackets(text, start, offset)
    if inside is not None:
        return CursorPlace(header + inside.path, inside.is_key)
    assigned = _TOML_KEY.match(line)
    if assigned is None:
        return CursorPlace((*header, *_parts(line.rpartition(".")[0])), is_key=True)
    return CursorPlace((*header, *_parts(assigned["key"])), is_key=False)


def _header(text: str, offset: int) -> tuple[str, ...]:
    found = next(iter(deque(_HEADER.finditer(text, 0, offset), maxlen=1)), None)
    if found is None:
        return ()
    path = _parts(found["name"])
    return (*path, ITEM) if found["open"] == "[[" else path


def _in_brackets(text: str, start: int, offset: int) -> CursorPlace | None:
    """Return the place inside a list or an inline table that opens on this line or a few lines above."""
    for _ in range(_VALUE_LINES):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        assigned = _TOML_KEY.match(line)
        if assigned is not None:
            opening = start + assigned.start("rest")
            if assigned["rest"][:1] not in ("[", "{") or opening >= offset:
                return None
            inside = flow_place(text, opening, offset)
            return CursorPlace(_parts(assigned["key"]) + inside.path, inside.is_key) if inside else None
        if start == 0 or _HEADER.match(line):
            return None
        start = text.rfind("\n", 0, start - 1) + 1
    return None


def _parts(name: str) -> tuple[str, ...]:
    return tuple(next(filter(None, part.groups()), "") for part in _PART.finditer(name))


_LINE: Final = re.compile(
    r"""(?P<indent>[ ]*+)(?P<dashes>(?:-(?:[ ]++|$))*+)
        (?:(?:"(?P<double>[^"\n]*+)"|'(?P<single>[^'\n]*+)'|(?P<plain>[\w$./~-]++))[ \t]*+:(?:[ \t]++|$))?+
        (?P<rest>.*+)""",
    re.VERBOSE,
)
_FLOW_LINES: Final = 200  # number of lines above in which an open bracket is searched


class _YamlLine:
    """One line: the columns of its dashes, its key, and the rest."""

    def __init__(self, text: str) -> None:
        match = _LINE.match(text)
        assert match is not None
        indent, dashes = match["indent"], match["dashes"]
        self.key = next((name for name in match.group("double", "single", "plain") if name is not None), None)
        self.dashes = [len(indent) + at for at, char in enumerate(dashes) if char == "-"]
        self.column = len(indent) + len(dashes)
        self.rest = match["rest"]
        self.rest_at = match.start("rest")
        self.is_empty = not self.dashes and self.key is None and (not self.rest or self.rest.startswith("#"))


def yaml_place(text: str, offset: int) -> CursorPlace:
    start = text.rfind("\n", 0, offset) + 1
    return _in_flow(text, start, offset) or _block(text, start, offset)


def _block(text: str, start: int, offset: int) -> CursorPlace:
    line = _YamlLine(text[start:offset])
    path = (*_above(text, start, line), *(ITEM for _ in line.dashes))
    return CursorPlace(path, is_key=True) if line.key is None else CursorPlace((*path, line.key), is_key=False)


def _above(text: str, start: int, line: _YamlLine) -> tuple[str, ...]:
    """Return the keys and lists that enclose a line, outermost first."""
    column = line.dashes[0] if line.dashes else line.column
    in_list = bool(line.dashes)
    found: list[str] = []
    for _, written in _upwards(text, start):
        if column == 0 and not in_list:
            break
        if written.startswith(" " * (column + 1)):
            continue  # a shortcut for most lines of a long document
        above = _YamlLine(written)
        if above.is_empty:
            continue
        # The items of a list may be in the column of its key.
        if above.key is not None and (above.column < column or (in_list and above.column == column)):
            found.append(above.key)
            column, in_list = above.column, False
        for dash in reversed(above.dashes):
            if dash < column:
                found.append(ITEM)
                column, in_list = dash, True
    return tuple(reversed(found))


def _in_flow(text: str, start: int, offset: int) -> CursorPlace | None:
    """Return the place inside unclosed brackets that open on this line or a few lines above."""
    leftmost = None
    for at, written in ((start, text[start:offset]), *islice(_upwards(text, start), _FLOW_LINES)):
        line = _YamlLine(written)
        # Text in brackets is indented further than their key; a key that is not ends them.
        if line.rest[:1] in ("[", "{") and (leftmost is None or line.column < leftmost):
            opening = at + line.rest_at
            inside = flow_place(text, opening, offset)
            if inside is not None:
                return CursorPlace(_block(text, at, opening).path + inside.path, inside.is_key)
        if line.key is not None:
            leftmost = line.column if leftmost is None else min(leftmost, line.column)
        if leftmost == 0:
            break
    return None


def _upwards(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the lines above an offset at a line start, nearest first."""
    while start > 0:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        yield start, text[start:end].rstrip("\r")


_WORD: Final = re.compile(r"[\w$#/.-]*+")
_TOML_WORD: Final = re.compile(r"[\w$#/-]*+")
_WORD_END: Final = re.compile(r"[\w$#/.-]*+$")
_TOML_WORD_END: Final = re.compile(r"[\w$#/-]*+$")  # end of a word in TOML, where a dot separates keys
_OPENING: Final = re.compile(r"[\[{]")
_QUOTED: Final = re.compile(r"\"(?:[^\"\\\n]++|\\.)*+\"?+|(?<!\w)'[^'\n]*+'?+")
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#")
_LONGEST_WORD: Final = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    notation: Notation
    start: int  # offset of the start of the word
    end: int
    word: str
    typed: str  # the word up to the cursor
    quote: str = ""  # quotation mark before the word, if any
    place: CursorPlace | None = None  # place in the document; None where neither a key nor a value is possible
    comment: str = ""  # comment up to the cursor, if it is in one
    has_value: bool = False  # True if the word is a key that is already followed by a colon


def notation_of(text: str, name: str) -> Notation:
    return "toml" if name.endswith(".toml") else detect_notation(text)


def cursor_at(text: str, offset: int, name: str) -> Cursor:
    notation = notation_of(text, name)
    left = max(text.rfind("\n", 0, offset) + 1, offset - _LONGEST_WORD)
    is_toml = notation == "toml"
    before = (_TOML_WORD_END if is_toml else _WORD_END).search(text, left, offset)
    after = (_TOML_WORD if is_toml else _WORD).match(text, offset, offset + _LONGEST_WORD)
    start, end = before.start() if before else offset, after.end() if after else offset
    quote = text[start - 1 : start] if text[start - 1 : start] in ('"', "'") else ""
    comment = "" if notation == "json" else _comment(text, offset)
    follows = text[end : end + 8].removeprefix(quote).lstrip(" \t")
    return Cursor(
        notation=notation,
        start=start,
        end=end,
        word=text[start:end],
        typed=text[start:offset],
        quote=quote,
        place=None if comment else _PLACES[notation](text, start),
        comment=comment,
        has_value=follows[:1] == ("=" if is_toml else ":"),
    )


def _comment(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    if "#" not in line:
        return ""
    found = _COMMENT.search(_QUOTED.sub(lambda match: "_" * len(match[0]), line))
    return line[found.start() :] if found else ""


def _json_place(text: str, offset: int) -> CursorPlace | None:
    opening = _OPENING.search(text)
    return flow_place(text, opening.start(), offset) if opening is not None else None


_PLACES: Final = {"yaml": yaml_place, "toml": toml_place, "braces": brace_place, "json": _json_place}


_LINE_END: Final = re.compile(r"\r\n?|\n")
_SHOWN_WORD: Final = re.compile(r"[\w./{}-]++|\S?")
_BOM: Final = "\ufeff"


class Positions:
    """One text of an editor. Offsets count characters of the text as the editor sent it."""

    def __init__(self, text: str, encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16) -> None:
        self.text = text
        self._encoding = encoding
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        # In findings only a line feed ends a line; in the protocol a carriage return does too.
        self._feeds = line_starts(text)

    def offset(self, position: Position) -> int:
        """Return the offset of a position; the end of the line if it is beyond it."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        if self._encoding == PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for number, character in enumerate(line):
            if units >= position.character:
                return start + number
            units += self._units(character)
        return start + len(line)

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self.text[self._starts[line] : offset]))

    def span(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def place(self, location: Location | None) -> Range:
        """Return the range of a finding: the word there if it has no end, the first line if it has no location."""
        if location is None or not location.line:
            first = _LINE_END.search(self.text)
            return self.span(0, first.start() if first else len(self.text))
        start = self.from_finding(location.line, location.column)
        if location.end_line:
            return self.span(start, max(start, self.from_finding(location.end_line, location.end_column)))
        word = _SHOWN_WORD.match(self.text, start)
        return self.span(start, word.end() if word else start)

    def edit(self, made: Replacement) -> TextEdit:
        """Convert a replacement by lines and columns, with the line ends of the text."""
        start, end = self.from_finding(made.line, made.column), self.from_finding(made.end_line, made.end_column)
        return TextEdit(Span(start, end), made.text.replace("\n", "\r\n") if "\r\n" in self.text else made.text)

    def from_finding(self, line: int, column: int) -> int:
        """Return the offset of a line and a column of a finding, both counted from one."""
        if line > len(self._feeds):
            return len(self.text)
        start = self._feeds[line - 1]
        if line == 1 and self.text.startswith(_BOM):
            start += len(_BOM)
        return min(start + max(column, 1) - 1, len(self.text))

    def _units(self, text: str) -> int:
        if self._encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
