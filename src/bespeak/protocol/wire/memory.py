"""A cache of parsed texts: clients repeat their headers from request to request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ValueT = TypeVar("ValueT")


class Memory(dict[bytes, ValueT]):
    """`memory[text]` returns the parser's result for the text. A full cache is emptied.

    This is the rule for every cache of what callers send, whatever holds it:

    - The key has everything that the value depends on. A value with credentials is found only by a caller that sends
      these credentials: nothing is stored for bytes that arrived at another time, or under a part of the request.
    - Peers choose the texts and must not choose the size: it holds up to `most` texts of at most `longest` bytes.
    - Values are not modified, since several requests share them.
    - An entry that a stranger displaces costs others time and changes no answer. What took a proof to make, such as a
      verified token, is cached apart from what anyone can cause to be made.
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
