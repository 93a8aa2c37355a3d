"""Endpoints ranked for a need: by the things it names, and by what is to be done with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_value import as_text
from bespeak.contract.relevance import Index, words
from bespeak.text.identifiers import HUMP
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.operation_class import fit

_LONGEST_NEED: Final = 1_000
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
        verbs = tuple(head.verb for head in head_verbs(need[:_LONGEST_NEED]) if head.kind != "own")
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
