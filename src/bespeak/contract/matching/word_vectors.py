"""Short vectors of usual words, so that words of one meaning meet where no model of embeddings is installed."""

from __future__ import annotations

import pkgutil
import zlib
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


@lru_cache(maxsize=16_384)
def _vector(word: str) -> tuple[float, ...] | None:
    table = _table()
    if (place := table.places.get(word)) is None:
        return None
    size, weight = len(table.scale), table.weights[place] / 255
    row = table.levels[place * size : (place + 1) * size]
    return tuple([weight * (level - LEVELS) * scale for level, scale in zip(row, table.scale, strict=True)])


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector for each text: of length 1, or zeros if it has no usual word."""
    return [_add(text) for text in texts]


def _add(text: str) -> list[float]:
    found = [row for word in words(text)[:_MOST] if (row := _vector(word)) is not None]
    total = [sum(column) for column in zip(*found, strict=True)] if found else [0.0] * len(_table().scale)
    length = sqrt(sum(value * value for value in total))
    return [value / length for value in total] if length else total
