"""Endpoints ranked for a need: by the things it names, and by what is to be done with them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text
from bespeak.text.identifiers import HUMP
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import THINGS
from bespeak.text.language.operation_class import fit

_WORD = re.compile(r"[a-z0-9]{2,40}")
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
    return [_base(word) for word in _WORD.findall(text[:50_000].lower())[:2_000] if word not in _FILLERS]


def _base(word: str) -> str:
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    # What is left of merged and merging is merg, of cancelled cancell: so all words lose such an end.
    word = word[:-1] if len(word) >= 5 and word[-1] == "e" else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou" else word


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


_LENGTH: Final = 0.3  # how much a long text counts less: it shares words with many needs
_ACTION: Final = 0.3  # how much the method counts beside the words


class EndpointIndex:
    """Endpoints, and other texts beside them."""

    def __init__(self, endpoints: Sequence[Endpoint], names: Sequence[str] = (), others: Iterable[str] = ()) -> None:
        """Index endpoints, with the names that they have elsewhere. `others` are texts without a method."""
        texts = [_parts(one, names[number] if names else "") for number, one in enumerate(endpoints)]
        texts += [(other,) for other in others]
        self._methods = [one.method.lower() for one in endpoints]
        self._index = Index(texts)
        sizes = [len({word for part in text for word in words(part)}) for text in texts]
        usual = max(sum(sizes) / len(sizes), 1.0) if sizes else 1.0
        self._lengths = [1.0 - _LENGTH + _LENGTH * size / usual for size in sizes]

    def rank(self, need: str) -> list[tuple[float, int]]:
        """Return score and index of all that shares a word with a need, best first. Scores are in (0, 1]."""
        verbs = tuple(head.verb for head in head_verbs(need[:1_000]) if head.kind != "own")
        ranked = []
        for score, index in self._index.rank(" ".join((need, *verbs))):
            method = self._methods[index] if index < len(self._methods) else ""
            action = _fit(method, verbs) if method else _NEUTRAL
            ranked.append((score / self._lengths[index] + _ACTION * (action - _NEUTRAL), index))
        ranked.sort(key=lambda pair: (-pair[0], pair[1]))
        return [(max(round(min(score, 1.0), 4), 0.0001), index) for score, index in ranked]


_NEUTRAL: Final = 0.5


@lru_cache(maxsize=4096)
def _fit(method: str, verbs: tuple[str, ...]) -> float:
    """Return how well a method does what one of the verbs says; neutral if nothing is known."""
    return max((found for verb in verbs if (found := fit(method, verb)) is not None), default=_NEUTRAL)


def _parts(endpoint: Endpoint, name: str) -> tuple[str, ...]:
    """Return the words of an endpoint, the most telling first."""
    semantic = endpoint.semantic
    parameters = " ".join(endpoint.input_schema.get("properties", {}))
    hints = as_text(dict(semantic.parameter_hints)) if semantic.parameter_hints else ""
    parts = (
        f"{name} {endpoint.method} {semantic.intent or endpoint.description}",
        endpoint.path,
        f"{endpoint.description} {semantic.outcome}",
        f"{parameters} {hints}",
    )
    return tuple(HUMP.sub(" ", part) for part in parts)
