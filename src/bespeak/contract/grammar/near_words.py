"""Words somebody may have meant: found by look-ups, for a stranger's typing slip must not cost a server time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_MOST: Final = 3
_LONGEST: Final = 40
"""A longer text is no typing slip."""
_SHORTEST_STEM: Final = 4


class NearWords:
    """An index of capital words by what is left of them when one letter is missing.

    Two words that differ by one letter more, less, other or swapped have such a rest in common.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._rests: dict[str, list[str]] = {}
        for word in sorted(self._words):
            for rest in set(_rests(word)):
                self._rests.setdefault(rest, []).append(word)

    def near(self, text: str) -> list[str]:
        """Up to three words: by a slip of the finger, or the stem the text is built on (BOOKING: BOOK)."""
        wanted = text.upper()
        if len(wanted) > _LONGEST:
            return []
        found = {word for rest in _rests(wanted) for word in self._rests.get(rest, ())}
        found.update(self._stems(wanted))
        return sorted(found, key=lambda word: (abs(len(word) - len(wanted)), word))[:_MOST]

    def _stems(self, wanted: str) -> Iterator[str]:
        for end in range(len(wanted) - 1, _SHORTEST_STEM - 1, -1):
            if wanted[:end] in self._words:
                yield wanted[:end]
                return


def _rests(word: str) -> Iterator[str]:
    yield word
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
