"""The places of keys and values in JSON text, by one pass over its tokens. It accepts any text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from bespeak.text.source.places import Place
from bespeak.text.source.tree import Span

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},:]|[^\s"\[\]{},:]++', re.DOTALL)


def scan(text: str) -> Place:
    """Return the place of the whole document, with all others below it."""
    return _Scanner(text).root


def find_repeated(text: str) -> tuple[Span, Span] | None:
    """Return the places of the first repeated key of an object: the second occurrence, then the first."""
    return _Scanner(text).repeated


def find_token(text: str, wanted: Callable[[str], bool]) -> tuple[int, int] | None:
    """Return the place of the first string or bare word of a kind."""
    for found in _TOKEN.finditer(text):
        if found[0] not in "[]{},:" and wanted(found[0]):
            return found.span()
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.repeated: tuple[Span, Span] | None = None
        self._open: list[Place] = []
        self._key: tuple[str, Span] | None = None
        top = Place(None, 0)
        top.items = []
        self._open.append(top)
        for found in _TOKEN.finditer(text):
            word = found[0]
            if word in "{[":
                self._begin(word, *found.span())
            elif word in "}]":
                if len(self._open) > 1:
                    self._open.pop().end = found.end()
                self._key = None
            elif word not in ",:":
                self._word(word, *found.span())
        self.root = top.items[0] if top.items else Place(None, 0, 0)

    def _begin(self, word: str, start: int, end: int) -> None:
        place = self._value(start, end)
        if word == "{":
            place.entries = {}
        else:
            place.items = []
        self._open.append(place)

    def _word(self, word: str, start: int, end: int) -> None:
        if self._open[-1].entries is not None and self._key is None:
            self._key = (_text(word), Span(start, end))
        else:
            self._value(start, end)

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
