"""Texts by their words: an inverted index that ranks by BM25F."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bespeak.contract.matching.needs import SYNONYMS, read_need, words

WEIGHTS: Final = (2.0, 1.0, 0.5, 0.5, 0.25)  # of the fields of a text, in falling importance
_MOST: Final = (40, 60, 60, 60, 60)  # words of each field that count: who writes more does not gain by it
_SATURATION: Final = 1.2
_LENGTH: Final = 0.5  # how much a long field counts less: it shares words with many needs
_SYNONYM: Final = 0.5

Field = tuple[frozenset[str], int]  # words of a field, each once, and how many it was written with


def read_text(text: str) -> tuple[Field, ...]:
    """Read a text without fields. A word counts once, so that repeating it gains nothing."""
    written = words(text)
    return ((frozenset(written), len(written)),)


def read_fields(texts: Sequence[str]) -> tuple[Field, ...]:
    """Read the fields of a contract. Of each field the first words count, and each of them once."""
    read = zip(map(words, texts), _MOST, strict=False)
    return tuple((frozenset(written[:most]), len(written)) for written, most in read)


class TextIndex:
    """Texts by word, so that ranking costs as much as there are matches rather than texts."""

    def __init__(self, texts: Iterable[tuple[Field, ...]]) -> None:
        listed = list(texts)
        self.size = len(listed)
        sizes = [[fields[at][1] for fields in listed if at < len(fields)] for at in range(len(WEIGHTS))]
        usual = [max(sum(some) / len(some), 1.0) if some else 1.0 for some in sizes]
        postings: dict[str, dict[int, float]] = {}
        for place, fields in enumerate(listed):
            found: dict[str, float] = {}
            for (terms, length), weight, mean in zip(fields, WEIGHTS, usual, strict=False):
                counts = weight / (1.0 - _LENGTH + _LENGTH * length / mean)
                for term in terms:
                    found[term] = found.get(term, 0.0) + counts
                    for group in SYNONYMS.get(term, ()):
                        found[group] = max(found.get(group, 0.0), counts)
            for term, count in found.items():
                postings.setdefault(term, {})[place] = count / (count + _SATURATION)
        self._postings: Mapping[str, Mapping[int, float]] = postings
        top = WEIGHTS[0] / (1.0 - _LENGTH + _LENGTH)
        self._top = top / (top + _SATURATION)

    def has(self, term: str) -> bool:
        """Return True if a text has a term."""
        return term in self._postings

    def rarity(self, term: str) -> float:
        """Return how much a term says: the fewer texts have it, the more."""
        having = len(self._postings.get(term, ()))
        return math.log(1.0 + (self.size - having + 0.5) / (having + 0.5))

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """Return the BM25F score of each text that has one of the terms, or another word for it."""
        scores: dict[int, float] = {}
        for term in terms:
            own = self._postings.get(term, {})
            weight = self.rarity(term)
            found = {place: weight * count for place, count in own.items()}
            for group in SYNONYMS.get(term, ()):
                half = min(self.rarity(group), weight) * _SYNONYM
                for place, count in self._postings.get(group, {}).items():
                    found[place] = max(found.get(place, 0.0), half * count)
            for place, score in found.items():
                scores[place] = scores.get(place, 0.0) + score
        return scores

    def most(self, terms: Iterable[str]) -> float:
        """Return the score of a text that has all terms in its most important field."""
        return self._top * sum(map(self.rarity, terms))

    def rank(self, need: str) -> list[tuple[float, int]]:
        """Return score, in (0, 1], and place of the texts that share a word, best first."""
        terms = read_need(need).terms
        most = self.most(terms)
        ranked = [(max(round(min(score / most, 1.0), 4), 0.0001), place) for place, score in self.scores(terms).items()]
        return sorted(ranked, key=lambda pair: (-pair[0], pair[1]))


def hits(term: str, field: Field) -> bool:
    """Return True if a field has a term, or another word for it."""
    found = field[0]
    return term in found or any(not found.isdisjoint(_WORDS_OF[group]) for group in SYNONYMS.get(term, ()))


_WORDS_OF: Final[dict[str, set[str]]] = {}
for _word, _groups in SYNONYMS.items():
    for _group in _groups:
        _WORDS_OF.setdefault(_group, set()).add(_word)
