"""Vectors of needs and endpoints, from whatever embeds texts here, kept by text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from operator import mul
from typing import Any, Final, NamedTuple

from bespeak.text.language import embedding, minilm

Vector = Sequence[float]
Embed = Callable[[Sequence[str]], Any]  # texts to a row for each: of length 1, or of zeros if it says nothing


class Backend(NamedTuple):
    """A way to embed texts."""

    name: str
    embed: Embed
    near: float = 0.4  # cosine from which two texts have something to do with each other


WORDS_ALONE: Final = Backend("words", lambda texts: [()] * len(texts))
_SMALL: Final = 1_000  # endpoints for which a model of sentences is fast enough: it takes 5 to 10 ms for each


def choose_backend(size: int) -> Backend:
    """Return the best installed backend for a number of endpoints."""
    if size <= _SMALL and find_spec(minilm.PACKAGE) and find_spec("numpy"):
        return Backend("minilm", minilm.embed)
    if embedding.is_installed():
        return Backend("wordllama", embedding.embed)
    return WORDS_ALONE


class VectorIndex:
    """The vectors of some texts."""

    def __init__(self, backend: Backend, texts: Sequence[str]) -> None:
        self.backend = backend
        self._rows: Any = _embed_all(backend, texts)

    def cosines(self, text: str) -> list[float]:
        """Return the cosine of each text with another one; nothing if it says nothing, or without vectors."""
        if self.backend is WORDS_ALONE or not text.strip():
            return []
        (row,) = self.backend.embed([text])
        if hasattr(self._rows, "dot"):
            found: list[float] = self._rows.dot(row).tolist()
            return found
        return [sum(map(mul, one, row)) for one in self._rows]


_KEPT: Final = 20_000
_kept: dict[tuple[str, str], Any] = {}


def _embed_all(backend: Backend, texts: Sequence[str]) -> Any:
    return backend.embed(list(texts)) if texts else []
