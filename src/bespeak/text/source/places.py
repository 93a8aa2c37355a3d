"""Places of keys and values as a tree beside the data, for notations whose parsers keep none."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from bespeak.text.source.pointer import is_index, unescaped
from bespeak.text.source.tree import Span, Tree


class Place:
    """The place of a key and its value, with the places of its entries or items below it."""

    __slots__ = ("end", "entries", "items", "key", "start")

    def __init__(self, key: Span | None, start: int, end: int = -1) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.entries: dict[str, Place] | None = None
        self.items: list[Place] | None = None

    @property
    def span(self) -> Span:
        """Span of the value."""
        return Span(self.start, self.end)

    @property
    def entry_span(self) -> Span:
        """Span of the key with its value, or of an item."""
        return Span(self.key.start if self.key else self.start, self.end)

    @property
    def children(self) -> list[Place]:
        """Places of the entries or items, in order."""
        return list(self.entries.values()) if self.entries is not None else self.items or []

    def below(self, part: str) -> Place | None:
        """Return the place of an entry or item by an escaped pointer part."""
        if self.entries is not None:
            return self.entries.get(unescaped(part))
        if self.items is not None and is_index(part, self.items):
            return self.items[int(part)]
        return None


class PlacedTree(Tree):
    """A document whose places are computed at first use."""

    __slots__ = ("_root",)

    def __init__(self, data: Any, text: str, file: str, *, crlf: bool = False) -> None:
        super().__init__(data, text, file, crlf=crlf)
        self._root: Place | None = None

    @abstractmethod
    def places(self) -> Place:
        """Compute the place of the whole document, with all others below it."""

    def place(self, at: str) -> Place | None:
        """Return the place of a pointer; None if it does not exist."""
        if self._root is None:
            self._root = self.places()
        here: Place | None = self._root
        for part in at.split("/")[1:]:
            if here is None:
                return None
            here = here.below(part)
        return here

    def _key_span(self, at: str) -> Span | None:
        found = self.place(at)
        if found is None or not at:
            return None
        return found.key or found.span

    def _value_span(self, at: str) -> Span | None:
        found = self.place(at)
        return None if found is None or found.end < 0 else found.span
