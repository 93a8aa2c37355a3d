"""A cache whose content is bounded in characters, for what is made of texts that anyone may have written."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

_OVERHEAD: Final = 500  # what an entry counts beside its text


V = TypeVar("V")


class BoundedCache(Generic[V]):
    """Values by the texts that they were made of.

    `lru_cache` bounds the number of entries: a few thousand documents of a megabyte are gigabytes.
    """

    def __init__(self, most: int) -> None:
        """Keep values of at most `most` characters or bytes of text in all; each entry counts 500 more."""
        self._most = most
        self._kept: dict[str | bytes | tuple[str, ...], V] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str | bytes | tuple[str, ...]) -> V | None:
        """Return the value that is kept for a text or several; None without one."""
        return self._kept.get(key)

    def put(self, key: str | bytes | tuple[str, ...], value: V) -> V:
        """Keep a value and return it. When there is no room, all others are dropped."""
        size = _OVERHEAD + (sum(map(len, key)) if isinstance(key, tuple) else len(key))
        if size > self._most:
            return value
        if self._size + size > self._most:
            # Other threads may read meanwhile: they keep the old dictionary.
            self._kept, self._size = {}, 0
        self._kept[key] = value
        self._size += size
        return value
