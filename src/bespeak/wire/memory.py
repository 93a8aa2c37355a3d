"""What was read once need not be read again: clients repeat their headers from request to request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

ValueT = TypeVar("ValueT")

LONGEST: Final = 2048
"""Longer texts are read anew each time; few clients send them, and a memory of them would be large."""


class Memory(dict[bytes, ValueT]):
    """`memory[text]` is what the reading function gives for the text. It forgets everything when it is full.

    The reading function must depend on nothing but the text, and what it gives must not be changed.
    """

    __slots__ = ("_most", "_read")

    def __init__(self, read: Callable[[bytes], ValueT], most: int) -> None:
        super().__init__()
        self._read = read
        self._most = most

    def __missing__(self, text: bytes) -> ValueT:
        value = self._read(text)
        if len(text) <= LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value
