"""What was read once need not be read again: clients repeat their headers from request to request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ValueT = TypeVar("ValueT")


class Memory(dict[bytes, ValueT]):
    """`memory[text]` is what the reading function gives for the text. It forgets everything when it is full.

    `most` texts of at most `longest` bytes are kept: strangers choose the texts, and must not choose its size.
    The reading function must depend on nothing but the text, and what it gives must not be changed.
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
