"""JSON text to plain data, strictly, with the places of keys and values on demand."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, Never

from bespeak.text.source import tree as trees
from bespeak.text.source.tree import Location, Place, PlacedTree, Span, SyntaxFault, location_of

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},:]|[^\s"\[\]{},:]++', re.DOTALL)


def find_repeated(text: str) -> tuple[Span, Span] | None:
    """Return the places of the first repeated key of an object: the second occurrence, then the first."""
    return _Scanner(text).repeated


def find_token(text: str, wanted: Callable[[str], bool]) -> tuple[int, int] | None:
    for found in _TOKEN.finditer(text):
        if found[0] not in "[]{},:" and wanted(found[0]):
            return found.span()
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.repeated: tuple[Span, Span] | None = None
        self._key: tuple[str, Span] | None = None
        top = Place(None, 0, items=[])
        self._open = [top]
        for found in _TOKEN.finditer(text):
            word, span = found[0], found.span()
            if word in "{[":
                place = self._value(*span)
                place.entries, place.items = ({}, None) if word == "{" else (None, [])
                self._open.append(place)
            elif word in "}]":
                if len(self._open) > 1:
                    self._open.pop().end = found.end()
                self._key = None
            elif word not in ",:" and self._open[-1].entries is not None and self._key is None:
                self._key = (_text(word), Span(*span))
            elif word not in ",:":
                self._value(*span)
        self.root = top.items[0] if top.items else Place(None, 0, 0)

    def _value(self, start: int, end: int) -> Place:
        around = self._open[-1]
        if around.entries is None:
            place = Place(None, start, end)
            if around.items is not None:
                around.items.append(place)
            return place
        name, key = self._key or ("", Span(start, start))
        self._key = None
        place = Place(key, start, end)
        known = around.entries.setdefault(name, place)
        if known is not place and self.repeated is None and known.key is not None:
            self.repeated = (key, known.key)
        return place


def _text(word: str) -> str:
    if "\\" not in word:
        return word[1:-1]
    try:
        return str(json.loads(word, strict=False))
    except ValueError:
        return word


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONSTANTS: Final = ("NaN", "Infinity", "-Infinity")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_WORDS: Final[dict[str, tuple[str, str]]] = {
    "Expecting value": ("a value is expected here", "Write a value; texts stand in double quotes."),
    "Expecting property name enclosed in double quotes": (
        "a key is expected here",
        "Write the key in double quotes; no comma stands after the last entry.",
    ),
    "Illegal trailing comma before end of object": ("a comma after the last entry", "Remove the comma."),
    "Illegal trailing comma before end of array": ("a comma after the last entry", "Remove the comma."),
    "Expecting ':' delimiter": ("a ':' is expected after the key", 'Write `"key": value`.'),
    "Expecting ',' delimiter": ("a comma is missing, or a bracket is not closed", "Write the comma or the bracket."),
    "Unterminated string starting at": ("a text is not closed", "Write the closing quote."),
    "Invalid control character at": ("a line break or control character inside a text", "Write it as an escape, \\n."),
    "Invalid \\escape": ("an escape that JSON does not know", "Write \\\\ for a backslash."),
    "Invalid \\uXXXX escape": ("an escape without its four hexadecimal digits", "Write \\\\ for a backslash."),
    "Extra data": ("something follows the end of the document", "Remove it: a file holds one document."),
}


class _NotJson(Exception):
    """Input that Python's JSON parser accepts, but JSON or this parser does not."""


class JsonTree(PlacedTree):
    """A JSON document."""

    __slots__ = ()

    notation = "json"
    scan = staticmethod(lambda text: _Scanner(text).root)


def parse_json(text: str, file: str) -> JsonTree | SyntaxFault:
    if (refused := trees.too_long(text, file)) is not None:
        return refused
    text, crlf = trees.plain(text)
    if (half := _SURROGATE.search(text)) is not None:
        return SyntaxFault(location_of(text, file, half.start(), half.end()), "half a surrogate pair", "Remove it.")
    if text.count(",") + text.count(":") + text.count("[") > trees.MAX_NODES:
        message = f"the document has more than {trees.MAX_NODES:,} keys and values"
        return SyntaxFault(Location(file), message, "Split it into several documents.")
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int)
    except RecursionError:
        return _too_deep(text, file)
    except json.JSONDecodeError as error:
        return _unreadable(error, text, file)
    except _NotJson:
        return _explain(text, file)
    if text.count("[") + text.count("{") > trees.MAX_DEPTH and _deeper(data, trees.MAX_DEPTH):
        return _too_deep(text, file)
    if _HALF.search(text) and (span := find_token(text, _is_half)) is not None:
        message = "an escape for half a character"
        return SyntaxFault(location_of(text, file, *span), message, "Write both halves, or the character itself.")
    return JsonTree(data, text, file, crlf=crlf)


def _unreadable(error: json.JSONDecodeError, text: str, file: str) -> SyntaxFault:
    at = min(error.pos, len(text))
    if text[at : at + 1] in {"]", "}"} and text[:at].rstrip().endswith(","):
        comma = text.rindex(",", 0, at)
        place = location_of(text, file, comma, comma + 1)
        return SyntaxFault(place, "a comma after the last entry", "Remove the comma.")
    message, advice = _WORDS.get(error.msg.rstrip(), (error.msg, ""))
    return SyntaxFault(location_of(text, file, at), message, advice)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _NotJson
    return made


def _constant(_: str) -> Never:
    raise _NotJson


def _int(digits: str) -> int:
    if len(digits) > trees.MAX_DIGITS:
        raise _NotJson
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NotJson
    return number


def _explain(text: str, file: str) -> SyntaxFault:
    """Explain the refusal: the first bad number, or else a repeated key."""
    span = find_token(text, _is_bad_number)
    repeated = find_repeated(text)
    if repeated is not None and (span is None or repeated[0].end <= span[0]):
        second, first = repeated
        line = text.count("\n", 0, first.start) + 1
        key = text[second.start : second.end][:80]
        message = f"the key {key} is repeated; line {line} has it already"
        advice = "Remove one of the two, or rename it."
        return SyntaxFault(location_of(text, file, second.start, second.end), message, advice)
    if span is None:
        return SyntaxFault(Location(file), "it cannot be read")
    token = text[span[0] : span[1]]
    reason = "is no JSON value" if token.startswith(_CONSTANTS) else "is too large"
    advice = "Write another number, or a text in quotes."
    return SyntaxFault(location_of(text, file, *span), f"{token[:40]} {reason}", advice)


def _is_bad_number(token: str) -> bool:
    if token.startswith(_CONSTANTS):  # the standard reader stops there and leaves the rest of the word
        return True
    if token.lstrip("-").isdecimal():
        return len(token) > trees.MAX_DIGITS
    try:
        return math.isinf(float(token))
    except ValueError:
        return False


def _is_half(token: str) -> bool:
    return token[0] == '"' and _HALF.search(token) is not None and _SURROGATE.search(json.loads(token)) is not None


def _too_deep(text: str, file: str) -> SyntaxFault:
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', text, re.DOTALL):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > trees.MAX_DEPTH:
            message = f"arrays and objects are nested more than {trees.MAX_DEPTH} levels deep"
            advice = "Give the inner part a name of its own under `schemas`."
            return SyntaxFault(location_of(text, file, found.start(), found.end()), message, advice)
    return SyntaxFault(Location(file), "it is nested too deeply")


def _deeper(data: Any, levels: int) -> bool:
    if isinstance(data, dict):
        data = data.values()
    elif not isinstance(data, list):
        return False
    return levels == 0 or any(_deeper(value, levels - 1) for value in data if isinstance(value, dict | list))
