"""Lexical signal: names compared as weighted sets of words that may be misspelled or synonyms."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Final

import msgspec

from bespeak.checks.alignment.names import Name
from bespeak.checks.alignment.word_synonyms import mine_synonyms
from bespeak.checks.alignment.words import OPPOSITES, is_actor, is_derived

CANDIDATES: Final = 40
"""Most candidates of one name."""
_KEPT: Final = 10
"""Most candidates of one term for which the other signals are computed."""
FLOOR: Final = 0.5
"""Score below which a pair is forgotten."""
_LOOKUPS: Final = 40_000_000
_LEAST_LOOKUPS, _MOST_LOOKUPS = 500, 20_000
"""Names that are looked at for one name, of `_LOOKUPS` for all. Rare words come first, so that a hostile ontology in
which every name has the same words costs no more than others."""
_SOFT: Final = 0.9
"""Lowest Jaro-Winkler similarity of two spellings of one word."""
_SHORTEST: Final = 4
"""Shortest word that may have another spelling."""
_SPELLED: Final = 0.97
_DERIVED: Final = 0.93
_COMPARISONS: Final = 30_000_000
"""Most comparisons of spellings; beyond, only equal words and synonyms count."""
_MOST_NEAR: Final = 500
_MOST_SPELLINGS: Final = 8
_NUMBER_DIFFERS: Final = 0.55
_NUMBER_MISSING: Final = 0.8
_OPPOSITE: Final = 0.6
_TELLING: Final = frozenset(word for pair in OPPOSITES for word in pair)
_TELLING_MISSING: Final = 0.9
_TELLING_DIFFERS: Final = 0.8

Named = Mapping[str, Sequence[Name]]
"""Names by the IRI of their term."""


class Match(msgspec.Struct, frozen=True):
    """Similarity of two terms by their closest names."""

    score: float
    source: Name
    target: Name


class Lexicon:
    """Names of two ontologies, indexed once, with what is known of their words."""

    def __init__(self, source: Named, target: Named) -> None:
        self._source = source
        owners: list[str] = []
        names: list[Name] = []
        for iri in sorted(target):
            for name in target[iri]:
                owners.append(iri)
                names.append(name)
        self._owners, self._names = owners, names
        count = sum(len(found) for found in source.values())
        self._lookups = max(_LEAST_LOOKUPS, min(_MOST_LOOKUPS, _LOOKUPS // max(count, 1)))
        both = [name for side in (source, target) for found in side.values() for name in found]
        counts = Counter(word for name in both for word in name.key)
        self._weights = {word: math.log(1 + len(both) / count) for word, count in counts.items()}
        self._synonyms = mine_synonyms(_joined_terms(source, target))
        # Places by word; dictionaries are sets that keep the order.
        self._index: dict[str, dict[int, None]] = {}
        self._joined: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            for word in name.key:
                self._index.setdefault(word, {})[place] = None
            self._joined.setdefault("".join(name.words), []).append(place)
        self._totals = [self._weight(name.key) for name in names]
        self._similar = self._compare_words({word for found in source.values() for name in found for word in name.key})

    def matches(self, iri: str) -> dict[str, Match]:
        """Return the best candidates of a source term by IRI."""
        found: dict[str, Match] = {}
        for name in self._source[iri]:
            for place, score in self._candidates(name):
                owner, other = self._owners[place], self._names[place]
                if owner not in found or found[owner].score < score:
                    found[owner] = Match(score, name, other)
        best = sorted(found.items(), key=lambda one: (-one[1].score, one[0]))
        return dict(best[:_KEPT])

    def similarity(self, one: Name, other: Name) -> float:
        """Return the share of weighted words that two names have in common, 0 to 1."""
        left, right = one.key, other.key
        if left == right:
            return 1.0
        weights, similar = self._weights, self._similar
        rest, others = left - right, right - left
        total = self._weight(left) + self._weight(right)
        shared = total - self._weight(rest) - self._weight(others)
        pairs = [
            (likeness * (weights[word] + weights[twin]), word, twin)
            for word in rest
            for twin, likeness in similar.get(word, ())
            if twin in others
        ]
        free, open_ = set(rest), set(others)
        for gain, word, twin in sorted(pairs, reverse=True) if len(pairs) > 1 else pairs:
            if word in free and twin in open_:
                free.discard(word)
                open_.discard(twin)
                shared += gain
        return shared / total * contrast(free, open_)

    def _weight(self, words: frozenset[str]) -> float:
        weights = self._weights
        return math.fsum([weights[word] for word in words])  # exact in any order: sets have none

    def _candidates(self, name: Name) -> list[tuple[int, float]]:
        """Return places of target names with their scores; at most `CANDIDATES` are compared word by word."""
        gains: dict[int, float] = {}
        weights, budget = self._weights, self._lookups
        total, totals = self._weight(name.key), self._totals
        rest = total
        for word in sorted(name.key, key=lambda one: (-weights[one], one)):
            # A name that has only the words from here on is not similar enough.
            closed = 2 * rest < FLOOR * (total + rest)
            rest -= weights[word]
            for twin, likeness in self._similar.get(word, ()):
                places = self._index[twin]
                gain = likeness * (weights[word] + weights[twin])
                if closed:
                    for place in gains.keys() & places.keys():
                        gains[place] += gain
                elif len(places) <= budget or not gains:
                    budget -= len(places)
                    for place in islice(places, self._lookups):
                        gains[place] = gains.get(place, 0.0) + gain
        bounds = [
            (gain / (total + totals[place]), -place)
            for place, gain in gains.items()
            if gain >= FLOOR * (total + totals[place])
        ]
        found: dict[int, float] = {}
        best: list[float] = []
        for bound, place in heapq.nlargest(CANDIDATES, bounds):
            # The bound is never lower than the similarity: what follows cannot be among the best any more.
            if len(best) == _KEPT and best[-1] >= bound:
                break
            found[-place] = self.similarity(name, self._names[-place])
            best = sorted((*best, found[-place]), reverse=True)[:_KEPT]
        # `fore limb` is `forelimb`, `e-mail` is `email`.
        for place in self._joined.get("".join(name.words), ())[:CANDIDATES]:
            found[place] = max(found.get(place, 0.0), _SPELLED)
        scored = ((place, score * name.weight * self._names[place].weight) for place, score in found.items())
        return [(place, score) for place, score in scored if score >= FLOOR]

    def _compare_words(self, words: set[str]) -> dict[str, list[tuple[str, float]]]:
        """Return the words of the target that are a word of the source, or spell it differently, or mean the same."""
        from rapidfuzz import process  # noqa: PLC0415 - an extra
        from rapidfuzz.distance import JaroWinkler  # noqa: PLC0415

        # Words that begin differently are not compared: the spelling would hardly ever be close enough.
        buckets: dict[str, list[str]] = {}
        for word in sorted(self._index):
            if len(word) >= _SHORTEST and not word[0].isdecimal():
                for start in (word[:1], word[:3]):
                    buckets.setdefault(start, []).append(word)
        similar: dict[str, list[tuple[str, float]]] = {}
        budget = _COMPARISONS
        for word in sorted(words):
            found: dict[str, float] = {}
            if len(word) >= _SHORTEST and not word[0].isdecimal() and budget > 0:
                alike, near = buckets.get(word[0], ()), buckets.get(word[:3], ())
                budget -= len(alike) + len(near)
                spelled = process.extract(
                    *(word, alike),
                    scorer=JaroWinkler.similarity,
                    processor=None,
                    score_cutoff=_SOFT,
                    limit=_MOST_SPELLINGS,
                )
                # Two words that both ontologies have are two words, not two spellings.
                found = {
                    twin: likeness * _SPELLED
                    for twin, likeness, _ in spelled
                    if not is_actor(word, twin) and not (word in self._index and twin in words)
                }
                found |= {twin: _DERIVED for twin in near[:_MOST_NEAR] if is_derived(word, twin)}
            for twin, value in self._synonyms.get(word, {}).items():
                if twin in self._index:
                    found[twin] = max(value, found.get(twin, 0.0))
            found = {twin: value for twin, value in found.items() if (word, twin) not in OPPOSITES}
            if word in self._index:
                found[word] = 1.0
            if found:
                similar[word] = list(found.items())
        return similar


def contrast(left: Set[str], right: Set[str]) -> float:
    """Return a factor for words that only one of two names has: numbers, or words with opposites such as left."""
    sides = [[word for word in words if word in _TELLING or _is_code(word)] for words in (left, right)]
    one, other = sides
    if not one and not other:
        return 1.0
    numbers = sum(any(_is_code(word) for word in side) for side in sides)
    factor = (1.0, _NUMBER_MISSING, _NUMBER_DIFFERS)[numbers]
    if any((word, twin) in OPPOSITES for word in one for twin in other):
        return factor * _OPPOSITE
    if numbers:
        return factor
    # `left lung` is a part of what `lung` means; `left` and `posterior` tell two different parts.
    return _TELLING_DIFFERS if one and other else _TELLING_MISSING


def _is_code(word: str) -> bool:
    return len(word) == 1 or word[0].isdecimal()  # C1 is not S1


def _joined_terms(source: Named, target: Named) -> list[Sequence[Name]]:
    """Return the names by term; terms that share a name are joined, so that each shows the synonyms of the other."""
    owners: dict[frozenset[str], set[str]] = {}
    for iri, names in target.items():
        for name in names:
            owners.setdefault(name.key, set()).add(iri)
    joined: list[Sequence[Name]] = []
    used: set[str] = set()
    for names in source.values():
        shared = {iri for name in names for iri in owners.get(name.key, ())}
        more: list[Name] = []
        if len(shared) == 1:
            used |= shared
            own = {name.key for name in names}
            more = [name for name in target[next(iter(shared))] if name.key not in own]
        joined.append([*names, *more])
    return joined + [names for iri, names in target.items() if iri not in used]
