"""all-MiniLM-L6-v2 in numpy: vectors of sentences, if its package is installed."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from bespeak.text.language.embedding import SENTENCES

HEADS: Final = 12
LAYERS: Final = 6
BATCH: Final = 64
FIRST, LAST, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
LONGEST: Final = 128  # word pieces of a text that are read
_WORD: Final = re.compile(r"[^\W_]{1,60}|[^\w\s]|_")

Array = np.ndarray[Any, np.dtype[np.float32]]


class MiniLM:
    """The weights and the vocabulary of the model, read by the names of its files."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        data = read("model/model.safetensors")
        size = int.from_bytes(data[:8], "little")
        self._weights: dict[str, Array] = {}
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                start, end = entry["data_offsets"]
                flat = np.frombuffer(data[8 + size + start : 8 + size + end], dtype=np.float32)
                self._weights[name] = flat.reshape(entry["shape"])
        words = read("model/vocab.txt").decode("utf-8").split("\n")
        self._vocabulary = {word: number for number, word in enumerate(words)}

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text; texts of the same length are computed together."""
        rows = [self._numbers(text) for text in texts]
        result = np.zeros((len(texts), self._weights["embeddings.word_embeddings.weight"].shape[1]), np.float32)
        for length in sorted({len(row) for row in rows}):
            places = [place for place, row in enumerate(rows) if len(row) == length]
            for start in range(0, len(places), BATCH):
                batch = places[start : start + BATCH]
                result[batch] = self._batch([rows[place] for place in batch])
        return result

    def _pieces(self, word: str) -> list[str]:
        """Split a word by WordPiece: repeatedly take the longest known prefix."""
        pieces: list[str] = []
        while word:
            prefix = "##" if pieces else ""
            end = next((n for n in range(len(word), 0, -1) if prefix + word[:n] in self._vocabulary), 0)
            if not end:
                return [UNKNOWN]
            pieces.append(prefix + word[:end])
            word = word[end:]
        return pieces

    def _numbers(self, text: str) -> list[int]:
        pieces = [piece for word in _split(text) for piece in self._pieces(word)][: LONGEST - 2]
        return [self._vocabulary[piece] for piece in (FIRST, *pieces, LAST)]

    def _batch(self, rows: list[list[int]]) -> Array:
        weights = self._weights
        state = weights["embeddings.word_embeddings.weight"][rows]
        state = state + weights["embeddings.position_embeddings.weight"][: len(rows[0])]
        state = state + weights["embeddings.token_type_embeddings.weight"][0]
        state = self._normed("embeddings.LayerNorm", state)
        for layer in range(LAYERS):
            state = self._layer(f"encoder.layer.{layer}.", state)
        mean: Array = state.mean(axis=1)
        unit: Array = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _layer(self, name: str, state: Array) -> Array:
        def heads(part: str) -> Array:
            whole = self._linear(f"{name}attention.self.{part}", state)
            return whole.reshape(*state.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        seen = self._linear(name + "attention.output.dense", seen.transpose(0, 2, 1, 3).reshape(state.shape))
        state = self._normed(name + "attention.output.LayerNorm", state + seen)
        inner = self._linear(name + "intermediate.dense", state)
        inner = inner * _normal_share(inner)
        return self._normed(name + "output.LayerNorm", state + self._linear(name + "output.dense", inner))

    def _linear(self, name: str, state: Array) -> Array:
        return state @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _normed(self, name: str, state: Array) -> Array:
        state = state - state.mean(axis=-1, keepdims=True)
        state = state / np.sqrt((state * state).mean(axis=-1, keepdims=True) + 1e-12)
        return state * self._weights[name + ".weight"] + self._weights[name + ".bias"]


@lru_cache(maxsize=1)
def _model() -> MiniLM:
    return MiniLM(lambda name: files(SENTENCES).joinpath(name).read_bytes())


def embed(texts: Sequence[str]) -> Array:
    """Return a matrix with a unit vector for each text; the package must be installed."""
    return _model().vectors(texts)


def _split(text: str) -> Iterator[str]:
    """Yield the words and marks of a text as the model's vocabulary has them: in lower case, without accents."""
    plain = unicodedata.normalize("NFD", text[: 8 * LONGEST].lower())
    for match in _WORD.finditer("".join(one for one in plain if unicodedata.category(one) != "Mn")):
        yield match[0]


def _normal_share(x: Array) -> Array:
    """Compute the normal distribution function at x by formula 7.1.26 of Abramowitz and Stegun: numpy has no erf."""
    z = np.abs(x) / math.sqrt(2.0)  # a number of numpy's would make all that follows double
    t = 1.0 / (1.0 + 0.3275911 * z)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1.0 - tail * np.exp(-z * z))
    return np.asarray(0.5 * (1.0 + erf), np.float32)
