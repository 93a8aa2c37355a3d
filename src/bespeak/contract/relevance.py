"""Relevance of a text to a need: shared words, weighted by rarity. Simple and deterministic."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import Final

from bespeak.text.language.lexicon import THINGS

_WORD = re.compile(r"[a-z0-9]{2,40}")
_MAX_WORDS = 2_000
_LONG: Final = 5
_SHORTEST: Final = 3
_PARTS: Final = (1.0, 0.8, 0.6, 0.5)  # weights of the parts of a text, in falling importance
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "an and any are as at be by can do does for from give has have how in is it its me my of on or our please "
        "show some tell that the their there these this to us want was we what when where which who will with you your",
    )
)


def words(text: str) -> list[str]:
    """Return the significant words of a text, roughly stemmed."""
    found = _WORD.findall(text[:50_000].lower())[:_MAX_WORDS]
    return [_base(word) for word in found if word not in _FILLERS]


def _base(word: str) -> str:
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    # What is left of merged and merging is merg, of cancelled cancell: so all words lose such an end.
    word = word[:-1] if len(word) >= _LONG and word[-1] == "e" else word
    return word[:-1] if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiou" else word


class Index:
    """Texts by word, so that ranking costs as much as there are matches rather than texts."""

    def __init__(self, texts: Iterable[str | tuple[str, ...]]) -> None:
        """Read the texts. One may be given in parts, the most important first."""
        self._places: dict[str, dict[int, float]] = {}
        self._things: dict[int, dict[int, float]] = {}
        self._size = 0
        for index, text in enumerate(texts):
            self._size += 1
            for part, weight in zip((text,) if isinstance(text, str) else text, _PARTS, strict=False):
                for word in set(words(part)):
                    places = [self._places.setdefault(word, {})]
                    places += [self._things.setdefault(thing, {}) for thing in _THINGS.get(word, ())]
                    for place in places:
                        place.setdefault(index, weight)

    def rank(self, need: str) -> list[tuple[float, int]]:
        """Return score, in (0, 1], and index of the texts that share a word, best first. A synonym counts half."""
        total = 0.0
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(need)):
            places = self._places.get(word, {})
            weight = self._weight(places)
            total += weight
            found = {index: weight * part for index, part in places.items()}
            for thing in _THINGS.get(word, ()):
                named = self._things.get(thing, {})
                half = min(self._weight(named), weight) / 2
                for index, part in named.items():
                    found[index] = max(found.get(index, 0.0), half * part)
            for index, score in found.items():
                scores[index] = scores.get(index, 0.0) + score
        ranked = ((max(round(min(score / total, 1.0), 4), 0.0001), index) for index, score in scores.items())
        return sorted(ranked, key=lambda pair: (-pair[0], pair[1]))

    def _weight(self, places: Collection[int]) -> float:
        return 1.0 + math.log((1 + self._size) / (1 + len(places)))


_THINGS: Final = {_base(word): things for word, things in THINGS.items()}
