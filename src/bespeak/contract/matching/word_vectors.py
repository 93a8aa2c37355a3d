"""Short vectors of usual words, so that words of one meaning meet where no model of embeddings is installed."""

from __future__ import annotations

import pkgutil
import sys
import zlib
from array import array
from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Final, NamedTuple

from bespeak.contract.matching.needs import words

FORMAT: Final = "bespeak word vectors 1"
LEVELS: Final = 5  # steps on each side of 0
_MOST: Final = 200  # words of a text that are added up


class _Table(NamedTuple):
    scale: tuple[float, ...]
    places: dict[str, int]
    weights: bytes  # rare words count more
    levels: bytes


@lru_cache(maxsize=1)
def _table() -> _Table:
    packed = pkgutil.get_data("bespeak.contract.matching", "data/words.vec")
    assert packed is not None
    title, scale, stems, rest = zlib.decompress(packed).split(b"\n", 3)
    assert title.decode() == FORMAT
    places = {stem: place for place, stem in enumerate(stems.decode().split())}
    return _Table(tuple(map(float, scale.split())), places, rest[: len(places)], rest[len(places) :])


def embed(texts: Sequence[str]) -> list[array[float]]:
    """Return a vector for each text: of length 1, or zeros if it has no usual word."""
    return [_add(text) for text in texts]


def _add(text: str) -> array[float]:
    table = _table()
    places = [place for word in words(text)[:_MOST] if (place := table.places.get(word)) is not None]
    size, total, weight = len(table.scale), 0, 0
    for place in places:
        # As one long integer, all numbers of a row are multiplied and added at once.
        row = array("I", list(table.levels[place * size : (place + 1) * size]))
        total += table.weights[place] * int.from_bytes(row.tobytes(), sys.byteorder)
        weight += table.weights[place]
    sums = array("I", total.to_bytes(size * 4, sys.byteorder))
    found = [(one - LEVELS * weight) * scale for one, scale in zip(sums, table.scale, strict=True)]
    length = sqrt(sum(value * value for value in found))
    return array("f", [value / (length or 1.0) for value in found])
