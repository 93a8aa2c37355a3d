"""The context of the cursor: word, place in the document, or comment. Works on broken documents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bespeak.app.lsp.brace_place import brace_place
from bespeak.app.lsp.flow_place import Place, flow_place
from bespeak.app.lsp.toml_place import toml_place
from bespeak.app.lsp.yaml_place import yaml_place
from bespeak.text.source.notation import detect_notation
from bespeak.text.source.tree import Notation

_WORD: Final = re.compile(r"[\w$#/.-]*+")
_TOML_WORD: Final = re.compile(r"[\w$#/-]*+")
_WORD_END: Final = re.compile(r"[\w$#/.-]*+$")
_TOML_WORD_END: Final = re.compile(r"[\w$#/-]*+$")
"""End of a word in TOML, where a dot separates keys."""
_OPENING: Final = re.compile(r"[\[{]")
_QUOTED: Final = re.compile(r"\"(?:[^\"\\\n]++|\\.)*+\"?+|(?<!\w)'[^'\n]*+'?+")
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#")
_LONGEST_WORD: Final = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    """The context of an offset."""

    notation: Notation
    start: int
    """Offset of the start of the word."""
    end: int
    word: str
    typed: str
    """The word up to the cursor."""
    quote: str = ""
    """Quotation mark before the word, if any."""
    place: Place | None = None
    """Place in the document; None where neither a key nor a value is possible."""
    comment: str = ""
    """Comment up to the cursor, if it is in one."""
    has_value: bool = False
    """True if the word is a key that is already followed by a colon."""


def notation_of(text: str, name: str) -> Notation:
    """Return the notation of a text, as the linter detects it."""
    return "toml" if name.endswith(".toml") else detect_notation(text)


def cursor_at(text: str, offset: int, name: str) -> Cursor:
    """Return the context of an offset in a text."""
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
        place=None if comment else _place(text, start, notation),
        comment=comment,
        has_value=follows[:1] == ("=" if is_toml else ":"),
    )


def _comment(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset]
    if "#" not in line:
        return ""
    bare = _QUOTED.sub(lambda match: "_" * len(match[0]), line)
    found = _COMMENT.search(bare)
    return line[found.start() :] if found else ""


def _place(text: str, offset: int, notation: Notation) -> Place | None:
    if notation == "yaml":
        return yaml_place(text, offset)
    if notation == "toml":
        return toml_place(text, offset)
    if notation == "braces":
        return brace_place(text, offset)
    opening = _OPENING.search(text)
    return flow_place(text, opening.start(), offset) if opening is not None else None
