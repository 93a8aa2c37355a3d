"""Words that mean the same, mined from the synonyms that the ontologies themselves declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from bespeak.checks.alignment.names import Name
from bespeak.checks.alignment.words import OPPOSITES

_MOST_PAIRS: Final = 66
"""Most pairs of names of one term: twelve names."""
_ONCE: Final = 0.8
_TWICE: Final = 0.9
_ALONE: Final = 0.92

WordSynonyms = dict[str, dict[str, float]]
"""Similarity of two words, in both directions."""


def mine_synonyms(terms: Iterable[Sequence[Name]]) -> WordSynonyms:
    """Return words that replace each other in names of one term: `renal vein` is also called `kidney vein`.

    Names of one word each state the synonym directly. Other names differ in exactly one word, and the more terms show
    it, the more it counts.
    """
    seen: Counter[tuple[str, str]] = Counter()
    alone: set[tuple[str, str]] = set()
    for names in terms:
        keys = [name.key for name in names]
        for one, other in list(combinations(keys, 2))[:_MOST_PAIRS]:
            if len(one) != len(other) or len(one - other) != 1:
                continue
            (left,), (right,) = one - other, other - one
            if left[0].isdecimal() or right[0].isdecimal() or (left, right) in OPPOSITES:
                continue
            pair = (min(left, right), max(left, right))
            seen[pair] += 1
            if len(one) == 1:
                alone.add(pair)
    found: WordSynonyms = {}
    for (left, right), count in seen.items():
        value = _ALONE if (left, right) in alone else _TWICE if count > 1 else _ONCE
        found.setdefault(left, {})[right] = value
        found.setdefault(right, {})[left] = value
    return found
