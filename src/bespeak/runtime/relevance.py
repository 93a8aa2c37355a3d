"""Relevance of a text to a need: shared words, weighted by rarity. Simple and deterministic."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

_WORD = re.compile(r"[a-z0-9]{2,40}")
_MAX_WORDS = 2_000
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "an and any are as at be by can do does for from give has have how in is it its me my of on or our please "
        "show some tell that the their there these this to us want was we what when where which who will with you your",
    )
)


def as_text(value: object) -> str:
    """Return text unchanged and anything else as JSON, for its words."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def words(text: str) -> list[str]:
    """Return the significant words of a text, roughly stemmed."""
    found = _WORD.findall(text[:50_000].lower())[:_MAX_WORDS]
    return [_base(word) for word in found if word not in _FILLERS]


def _base(word: str) -> str:
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


class Index:
    """Texts by word, so that ranking costs as much as there are matches rather than texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._places: dict[str, list[int]] = {}
        self._size = 0
        for index, text in enumerate(texts):
            self._size += 1
            for word in set(words(text)):
                self._places.setdefault(word, []).append(index)

    def rank(self, need: str) -> list[tuple[float, int]]:
        """Return score and index of the texts that share a word with the need, best first. Scores are in (0, 1]."""
        wanted = {word: self._weight(word) for word in words(need)}
        total = sum(wanted.values())
        scores: dict[int, float] = {}
        for word, weight in wanted.items():
            for index in self._places.get(word, ()):
                scores[index] = scores.get(index, 0.0) + weight / total
        ranked = ((max(round(min(score, 1.0), 4), 0.0001), index) for index, score in scores.items())
        return sorted(ranked, key=lambda pair: (-pair[0], pair[1]))

    def _weight(self, word: str) -> float:
        return 1.0 + math.log((1 + self._size) / (1 + len(self._places.get(word, ()))))
