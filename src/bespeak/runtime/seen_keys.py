"""A filter of idempotency keys: tells for certain that a key is new, so that no query is needed for it.

A process that is alone with its store sees every key that is recorded there. Remembering them all would take memory
without bound; a Bloom filter takes a fixed amount and errs on one side only. A key that it calls seen is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_BITS: Final = 1 << 23
"""Size of the filter, one mebibyte: with 100,000 keys about one new key in a hundred is looked up in vain."""

MOST_LOADED: Final = 200_000
"""Limit of keys read from the store at start; with more of them every key is looked up."""


class SeenKeys:
    """Keys that were used, with false positives and without false negatives."""

    __slots__ = ("_bits",)

    def __init__(self, keys: Iterable[tuple[str, str]] = ()) -> None:
        self._bits = bytearray(_BITS >> 3)
        for scope, key in keys:
            self.add(scope, key)

    def add(self, scope: str, key: str) -> bool:
        """Add a key; return True if it is certainly new."""
        # The hash of strings is keyed with a random number per process: callers cannot aim at one bit.
        place = hash((scope, key)) % _BITS
        index, bit = place >> 3, 1 << (place & 7)
        bits = self._bits
        if bits[index] & bit:
            return False
        bits[index] |= bit
        return True
