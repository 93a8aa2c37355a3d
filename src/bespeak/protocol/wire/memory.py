"""A cache of parsed texts: clients repeat their headers from request to request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ValueT = TypeVar("ValueT")


class Memory(dict[bytes, ValueT]):
    """`memory[text]` returns the parser's result for the text. A full cache is emptied.

    It holds up to `most` texts of at most `longest` bytes, because peers choose the texts and must not choose its size.
    The parser must depend only on the text, and its results must not be modified.
    """

    __slots__ = ("_longest", "_most", "_read")

    def __init__(self, read: Callable[[bytes], ValueT], *, most: int, longest: int) -> None:
        super().__init__()
        self._read = read
        self._most = most
        self._longest = longest

    def __missing__(self, text: bytes) -> ValueT:
        value = self._read(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value
