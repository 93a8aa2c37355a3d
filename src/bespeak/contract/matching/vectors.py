"""Vectors of needs and endpoints, from whatever embeds texts here, kept by text."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from operator import mul
from typing import Any, Final, NamedTuple

from bespeak.contract.matching import word_vectors
from bespeak.text.language import embedding

Embed = Callable[[Sequence[str]], Any]


class Backend(NamedTuple):
    """A way to embed texts; `embed` returns a row for each, of length 1, or zeros if a text says nothing."""

    name: str
    embed: Embed
    near: float = 0.2  # cosine from which texts that share no word have something to do with each other
    beside: float = 0.2  # weight of shared words beside the vectors


WORDS: Final = Backend("words", word_vectors.embed, near=0.25, beside=0.3)
_SHARE: Final = 0.4  # of the vectors of words beside those of wordllama: each knows words that the other does not
SMALL: Final = 1_000  # endpoints for which a model of sentences is fast enough: it takes 5 to 10 ms for each


def installed_backends() -> list[Backend]:
    """Return the backends that can be used here, the best last."""
    found = [WORDS]
    if embedding.is_installed():
        found.append(Backend("wordllama", _embed_both))
    if embedding.is_installed(embedding.SENTENCES):
        from bespeak.text.language.minilm import embed  # noqa: PLC0415 - needs numpy

        found.append(Backend("minilm", embed))
    return found


def _embed_both(texts: Sequence[str]) -> Any:
    import numpy as np  # noqa: PLC0415 - comes with the extra

    parts: list[tuple[float, Any]] = [(1.0 - _SHARE, embedding.embed(texts)), (_SHARE, word_vectors.embed(texts))]
    return np.hstack([np.multiply(sqrt(share), rows) for share, rows in parts])


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
        found: list[float] = self._rows.dot(row).tolist()
        return found


class _Columns:
    """Rows of numbers from -1 to 1 where numpy is not installed: each column is one long integer.

    The product of a long integer with a short one multiplies a number of every row at once, in C.
    """

    def __init__(self, rows: Sequence[Sequence[float]]) -> None:
        steps = [_to_steps(row) for row in rows]
        self._bytes = 4 * len(rows)
        self._totals = [sum(row) for row in steps]
        self._columns = [
            int.from_bytes(array("I", column).tobytes(), sys.byteorder) for column in zip(*steps, strict=True)
        ]

    def dot(self, row: Sequence[float]) -> array[float]:
        """Return the product of each row with another one; of 4,000 numbers at most, lest a sum takes five bytes."""
        steps = _to_steps(row)
        sums = array("I", sum(map(mul, self._columns, steps)).to_bytes(self._bytes, sys.byteorder))
        # (a + 1)(b + 1) = ab + (a + 1) + (b + 1) - 1, in steps
        rest = _STEPS * len(row) - sum(steps)
        return array(
            "d", [(one / _STEPS - total + rest) / _STEPS for one, total in zip(sums, self._totals, strict=True)]
        )


_STEPS: Final = 1_000


def _to_steps(row: Sequence[float]) -> list[int]:
    return [round(_STEPS * value) + _STEPS for value in row]


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
    try:
        import numpy as np  # noqa: PLC0415 - comes with the extra
    except ImportError:
        return _Columns(rows)
    return np.asarray(rows, dtype=np.float32)
