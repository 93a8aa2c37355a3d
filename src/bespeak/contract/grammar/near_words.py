"""Near matches of words, found by look-ups, because a stranger's typo must not cost a server time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_MOST: Final = 3
_LONGEST: Final = 40
"""Limit of a text's length; a longer one is not a typo."""
_SHORTEST_STEM: Final = 4


class NearWords:
    """An index of words by what remains when one letter is deleted.

    Two words that differ by one inserted, deleted, replaced or swapped letter have such a remainder in common.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._rests: dict[str, list[str]] = {}
        for word in sorted(self._words):
            for rest in set(_rests(word)):
                self._rests.setdefault(rest, []).append(word)

    def near(self, text: str) -> list[str]:
        """Return up to three words: by a typo, or the stem of the text (BOOKING: BOOK)."""
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
