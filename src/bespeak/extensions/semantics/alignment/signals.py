"""Signals of the aligner (IoA 7.2): lexical, structural, behavioral, and embeddings with the extra `embeddings`."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from bespeak.extensions.semantics.alignment.names import OPPOSITES, Name, is_actor, is_derived, mine_synonyms, words_of
from bespeak.extensions.semantics.terms import Ontology, Term

CANDIDATES: Final = 40  # most candidates of one name
_KEPT: Final = 10  # most candidates of one term for which the other signals are computed
FLOOR: Final = 0.5  # score below which a pair is forgotten
_LOOKUPS: Final = 40_000_000
# Names that are looked at for one name, of `_LOOKUPS` for all. Rare words come first, so that a hostile ontology in
# which every name has the same words costs no more than others.
_LEAST_LOOKUPS, _MOST_LOOKUPS = 500, 20_000
_SOFT: Final = 0.9  # lowest Jaro-Winkler similarity of two spellings of one word
_SHORTEST: Final = 4  # shortest word that may have another spelling
_SPELLED: Final = 0.97
_LONGEST_SLIP: Final = 2  # most letters by which the lengths of two spellings differ
_COMPARISONS: Final = 30_000_000  # most comparisons of spellings; beyond, only equal words and synonyms count
_MOST_NEAR: Final = 500
_TELLING: Final = frozenset(word for pair in OPPOSITES for word in pair)

Named = Mapping[str, Sequence[Name]]  # names by the IRI of their term


class NameMatch(msgspec.Struct, frozen=True):
    score: float
    source: Name
    target: Name


class NameIndex:
    """Names of two ontologies, indexed once, with what is known of their words."""

    def __init__(self, source: Named, target: Named) -> None:
        self._source = source
        self._owners = [iri for iri in sorted(target) for _ in target[iri]]
        self._names = names = [name for iri in sorted(target) for name in target[iri]]
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

    def matches(self, iri: str) -> dict[str, NameMatch]:
        found: dict[str, NameMatch] = {}
        for name in self._source[iri]:
            for place, score in self._candidates(name):
                owner, other = self._owners[place], self._names[place]
                if owner not in found or found[owner].score < score:
                    found[owner] = NameMatch(score, name, other)
        return dict(sorted(found.items(), key=lambda one: (-one[1].score, one[0]))[:_KEPT])

    def similarity(self, one: Name, other: Name) -> float:
        """Return the share of weighted words that two names have in common, 0 to 1."""
        left, right = one.key, other.key
        if left == right:
            return 1.0
        weights, similar = self._weights, self._similar
        rest, others = left - right, right - left
        total = self._weight(left) + self._weight(right)
        shared = total - self._weight(rest) - self._weight(others)
        twins = ((word, *twin) for word in rest for twin in similar.get(word, ()))
        pairs = [(alike * (weights[word] + weights[twin]), word, twin) for word, twin, alike in twins if twin in others]
        free, open_ = set(rest), set(others)
        for gain, word, twin in sorted(pairs, reverse=True) if len(pairs) > 1 else pairs:
            if word in free and twin in open_:
                free.discard(word)
                open_.discard(twin)
                shared += gain
        if free and open_ and any(word[0].isdecimal() for word in left & right):
            shared += self._match_initials(free, open_) + self._match_initials(open_, free)
        return shared / total * contrast(free, open_)

    def _match_initials(self, letters: set[str], words: set[str]) -> float:
        """Match letters beside a number with what they stand for: T4 is thoracic 4. Return the gain."""
        gain = 0.0
        for letter in sorted(one for one in letters if len(one) == 1 and one.isalpha()):
            meant = [word for word in sorted(words) if len(word) > 1 and word[0] == letter]
            if len(meant) == 1:
                letters.discard(letter)
                words.discard(meant[0])
                gain += _SPELLED * (self._weights[letter] + self._weights[meant[0]])
        return gain

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
        sums = ((place, gain, total + totals[place]) for place, gain in gains.items())
        bounds = [(gain / both, -place) for place, gain, both in sums if gain >= FLOOR * both]
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
                scorer = JaroWinkler.similarity
                spelled = process.extract(word, alike, scorer=scorer, processor=None, score_cutoff=_SOFT, limit=8)
                # Two words that both ontologies have are two words, not two spellings.
                found = {
                    twin: likeness * _SPELLED
                    for twin, likeness, _ in spelled
                    if abs(len(word) - len(twin)) <= _LONGEST_SLIP
                    and not is_actor(word, twin)
                    and not (word in self._index and twin in words)
                }
                found |= {twin: 0.93 for twin in near[:_MOST_NEAR] if is_derived(word, twin)}
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
    factor = (1.0, 0.9, 0.55)[numbers]
    if any((word, twin) in OPPOSITES for word in one for twin in other):
        return factor * 0.6
    if numbers:
        return factor
    # `left lung` is a part of what `lung` means; `left` and `posterior` tell two different parts.
    return 0.8 if one and other else 0.9


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


_MOST_NEIGHBORS: Final = 24
_HIGHEST: Final = 4  # levels that are walked up

Neighbors = tuple[Sequence[str], Sequence[str], Sequence[str]]  # above a term, what it is a part of, and below it
_CHILDREN: Final = 2

Scores = Mapping[str, Mapping[str, float]]  # score by source and target


class Hierarchy:
    """Relations between the terms of one ontology, with a bounded number of neighbors for each."""

    def __init__(self, ontology: Ontology) -> None:
        self._up: dict[str, tuple[str, ...]] = {}
        self._fillers: dict[str, tuple[str, ...]] = {}
        self._down: dict[str, list[str]] = {}
        self._neighbors: dict[str, Neighbors] = {}
        for iri in sorted(ontology.terms):
            term = ontology.terms[iri]
            self._up[iri] = term.parents[:_MOST_NEIGHBORS]
            self._fillers[iri] = (*term.fillers, *term.requires, *term.in_domain, *term.applies_to)[:_MOST_NEIGHBORS]
            for parent in self._up[iri]:
                below = self._down.setdefault(parent, [])
                if len(below) < _MOST_NEIGHBORS:
                    below.append(iri)

    def neighbors(self, iri: str) -> Neighbors:
        """Return the neighbors of a term; two levels above it."""
        known = self._neighbors.get(iri)
        if known is None:
            parents = self._up.get(iri, ())
            above = dict.fromkeys((*parents, *(high for parent in parents for high in self._up.get(parent, ()))))
            known = (list(above)[:_MOST_NEIGHBORS], self._fillers.get(iri, ()), self._down.get(iri, ()))
            self._neighbors[iri] = known
        return known

    def ancestors(self, iri: str) -> set[str]:
        """Return the terms on some levels above a term."""
        found: set[str] = set()
        level = [iri]
        for _ in range(_HIGHEST):
            level = [high for one in level for high in self._up.get(one, ()) if high not in found][:_MOST_NEIGHBORS]
            found.update(level)
        return found


def structural(source: Neighbors, target: Neighbors, scores: Scores) -> float | None:
    """Return how well the neighbors of two terms agree, 0 to 1; None if there are none to compare."""
    parts: list[float] = []
    for place, (ours, theirs) in enumerate(zip(source, target, strict=True)):
        if not ours or not theirs:
            continue
        scored = filter(None, map(scores.get, ours))
        best = [max((found[other] for other in theirs if other in found), default=0.0) for found in scored]
        # One common parent or whole is enough; of the children, as many as both can have in common.
        count = 1 if place < _CHILDREN else min(len(ours), len(theirs))
        parts.append(sum(sorted(best)[-count:]) / count)
    return sum(parts) / len(parts) if parts else None


_MOST_MEMBERS: Final = 100
_SEVERAL: Final = 5.0  # number of calls after which the history counts half


class History(msgspec.Struct, frozen=True):
    succeeded: int
    failed: int

    @property
    def rate(self) -> float:
        """Smoothed rate of success: half without any call."""
        return (self.succeeded + 1) / (self.succeeded + self.failed + 2)

    @property
    def reliability(self) -> float:
        """Weight of the history, which grows with the number of calls."""
        calls = self.succeeded + self.failed
        return calls / (calls + _SEVERAL)


Histories = Mapping[tuple[str, str], History]  # history by source and target of a mapping


def behavioral(source: Term, target: Term) -> float | None:
    """Return whether one capability can stand in for another, 0 to 1; None if they do not declare enough.

    The target must accept what callers send for the source, and return what callers of the source can read.
    """
    parts = []
    for given, taken in ((source.inputs, target.inputs), (target.outputs, source.outputs)):
        if given and taken:
            best = [max(_compare(one, other) for other in taken[:20]) for one in given[:20]]
            parts.append(sum(best) / len(best))
    return sum(parts) / len(parts) if parts else None


def _compare(given: str, taken: str) -> float:
    ours, theirs = _schema(given), _schema(taken)
    if ours is not None and theirs is not None:
        return _compare_schemas(ours, theirs)
    if ours is not None or theirs is not None:
        text = given if ours is None else taken
        return 0.8 if "json" in text or text.strip() == "*/*" else 0.1
    types = (text.partition(";")[0].strip().lower().partition("/") for text in (given, taken))
    (kind, _, sub), (other, _, wanted) = types
    if (kind, sub) == (other, wanted):
        return 1.0
    if other == "*" or (kind == other and wanted == "*"):
        return 0.95
    if kind == "*" or (kind == other and sub == "*"):
        return 0.6
    # application/fhir+json is JSON, whatever else it is.
    if kind == other and sub.rpartition("+")[2] == wanted.rpartition("+")[2]:
        return 0.7 if "+" in sub else 0.5
    return 0.3 if kind == other == "text" else 0.0


@lru_cache(maxsize=4_096)
def _schema(text: str) -> Mapping[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _compare_schemas(given: Mapping[str, Any], taken: Mapping[str, Any]) -> float:
    """Compare the types, and of objects the members: what is required must be given."""
    if (alike := _compare_types(given, taken)) == 0.0:
        return 0.0
    ours, theirs = _members(given), _members(taken)
    if not theirs:
        return alike
    required = taken.get("required")
    needed = {words_of(name) for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    wanted = [name for name in theirs if name in needed] or list(theirs)
    found = [_compare_types(ours[name], theirs[name]) if name in ours else 0.0 for name in wanted]
    return alike * sum(found) / len(found)


def _members(schema: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    members = schema.get("properties")
    named = list(members.items())[:_MOST_MEMBERS] if isinstance(members, dict) else []
    return {words_of(name): part for name, part in named}


def _compare_types(given: Any, taken: Any) -> float:
    kinds = (schema.get("type") if isinstance(schema, dict) else None for schema in (given, taken))
    listed = (kind if isinstance(kind, list) else [kind] for kind in kinds)
    ours, theirs = ({one for one in several if isinstance(one, str)} for several in listed)
    if not ours or not theirs:
        return 0.8
    if "number" in theirs and "integer" in ours:
        return 1.0
    return len(ours & theirs) / len(ours)


Embed = Callable[[Sequence[str]], Any]  # function from texts to a matrix with a vector of length 1 for each
_NEAR: Final = 0.85  # cosine from which a pair is a candidate even if its names have different words
_NEAREST: Final = 5
_ROWS: Final = 256


class Vectors:
    def __init__(self, embed: Embed, source: Named, target: Named) -> None:
        self._sides = [[(iri, name) for iri in sorted(side) for name in side[iri]] for side in (source, target)]
        texts = ([" ".join(name.words) for _, name in side] for side in self._sides)
        self._matrices: list[Any] = [embed(side) if side else None for side in texts]

    def near(self) -> dict[str, dict[str, tuple[float, Name, Name]]]:
        """Return the closest target terms of the source terms, with the names that are close."""
        found: dict[str, dict[str, tuple[float, Name, Name]]] = {}
        ours, theirs = self._matrices
        if ours is None or theirs is None:
            return found
        for start in range(0, len(self._sides[0]), _ROWS):
            block = ours[start : start + _ROWS] @ theirs.T
            rows, places = (block >= _NEAR).nonzero()
            near = zip(rows.tolist(), places.tolist(), strict=True)
            pairs = [(row, -float(block[row, place]), place) for row, place in near]
            for row, negative, place in sorted(pairs):
                iri, name = self._sides[0][start + row]
                other, twin = self._sides[1][place]
                best = found.setdefault(iri, {})
                if len(best) < _NEAREST and (other not in best or best[other][0] < -negative):
                    best[other] = (-negative, name, twin)
        return found
