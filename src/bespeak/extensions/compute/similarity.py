"""How alike texts are: by their words, and by vectors if the extra `embeddings` is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from bespeak.documents.adoption.naming import singular
from bespeak.extensions.acquire.methods import texts_of
from bespeak.extensions.acquire.store import split_words
from bespeak.text.language.embedding import cosines
from bespeak.text.language.sentence import listed
from bespeak.text.language.verb_form import lemmas

_MOST_WORDS: Final = 300  # first words of a text that are compared
_FAR: Final = 0.2  # cosine of texts that have nothing to do with each other; they had up to 0.16 with wordllama
_STEP: Final = 0.3  # what a cosine must exceed it by to count as much as a word that only one text has


def join_texts(value: Any) -> str:
    """Return the texts in a value, however deep, as one."""
    return " ".join(text for _, text in texts_of({"": value}))


def read_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without those that every text has."""
    found = map(singular, set(split_words(text, most=_MOST_WORDS)) - listed("english") - listed("foreign"))
    return frozenset(next((one.verb for one in lemmas(stem)), stem) for stem in found)


def compare(texts: Sequence[str], others: Sequence[str], strong: Sequence[str] = ()) -> tuple[list[list[float]], str]:
    """Return the evidence that each text is about each of the others, and the method: `lexical` or `embedding`.

    A word that only one of the others has counts 1, a `strong` one of it 1.5, and one that all have almost nothing.
    Vectors add what words do not show.
    """
    having: dict[str, dict[int, float]] = {}
    for weight, side in ((1.0, others), (1.5, strong)):
        for place, text in enumerate(side):
            for word in read_stems(text):
                having.setdefault(word, {})[place] = weight
    rarity = {word: math.log(1 + (len(others) - len(one) + 0.5) / (len(one) + 0.5)) for word, one in having.items()}
    rarest = math.log(1 + (len(others) - 0.5) / 1.5)
    found = [[0.0] * len(others) for _ in texts]
    for row, text in zip(found, texts, strict=True):
        for word in sorted(read_stems(text) & having.keys()):  # in an order, so that sums do not differ
            for place, weight in having[word].items():
                row[place] += weight * rarity[word] / rarest
    vectors = cosines(texts, others)
    for row, near in zip(found, vectors or (), strict=False):
        row[:] = [own + max(cosine - _FAR, 0.0) / _STEP for own, cosine in zip(row, near, strict=True)]
    return found, "lexical" if vectors is None else "embedding"
