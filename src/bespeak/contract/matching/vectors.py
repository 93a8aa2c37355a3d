"""Vectors of needs and endpoints, from whatever embeds texts here, kept by text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import mul
from typing import Any, Final, NamedTuple

from bespeak.contract.matching import word_vectors
from bespeak.text.language import embedding

Embed = Callable[[Sequence[str]], Any]


class Backend(NamedTuple):
    """A way to embed texts; `embed` returns a row for each, of length 1, or zeros if a text says nothing."""

    name: str
    embed: Embed
    near: float = 0.2  # cosine from which two texts have something to do with each other
    beside: float = 0.2  # weight of shared words beside the vectors
    apart: float = 0.2  # cosine below which texts that share no word are not meant by each other


WORDS: Final = Backend("words", word_vectors.embed, beside=0.5, apart=0.4)
SMALL: Final = 1_000  # endpoints for which a model of sentences is fast enough: it takes 5 to 10 ms for each


def installed_backends() -> list[Backend]:
    """Return the backends that can be used here, the best last."""
    found = [WORDS]
    if embedding.is_installed():
        found.append(Backend("wordllama", embedding.embed))
    if embedding.is_installed(embedding.SENTENCES):
        from bespeak.text.language.minilm import embed  # noqa: PLC0415 - needs numpy

        found.append(Backend("minilm", embed))
    return found


@lru_cache(maxsize=2)
def usual_backend(*, small: bool) -> Backend:
    """Return the best installed backend, for few endpoints or for many."""
    return next(one for one in reversed(installed_backends()) if small or one.name != "minilm")


class VectorIndex:
    """The vectors of some texts."""

    def __init__(self, backend: Backend, texts: Sequence[str]) -> None:
        self.backend = backend
        self._rows: Any = _embed_all(backend, texts)

    def cosines(self, text: str) -> list[float]:
        """Return the cosine of each text with another one."""
        (row,) = self.backend.embed([text])
        if hasattr(self._rows, "dot"):
            found: list[float] = self._rows.dot(row).tolist()
            return found
        return [sum(map(mul, one, row)) for one in self._rows]


_KEPT: Final = 20_000  # vectors that are kept for the next index
_kept: dict[tuple[Embed, str], Any] = {}


def _embed_all(backend: Backend, texts: Sequence[str]) -> Any:
    """Return the vectors of texts; those of earlier texts are not computed again."""
    # Indexes are also made in threads: what another one removes meanwhile is held here.
    rows_of = {text: row for text in texts if (row := _kept.get((backend.embed, text))) is not None}
    if new := [text for text in dict.fromkeys(texts) if text not in rows_of]:
        found = dict(zip(new, backend.embed(new), strict=True))
        rows_of |= found
        if len(_kept) + len(found) > _KEPT:
            _kept.clear()
        _kept.update(((backend.embed, text), row) for text, row in found.items())
    rows = [rows_of[text] for text in texts]
    with suppress(ImportError):
        import numpy as np  # noqa: PLC0415 - comes with the extra

        return np.asarray(rows, dtype=np.float32)
    return rows
