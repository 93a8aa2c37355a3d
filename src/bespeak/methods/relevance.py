"""How well a text answers a need: shared words, rare ones counting more. Simple, and the same on every machine."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[a-z0-9]{2,40}")
_MAX_WORDS = 2_000
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "an and any are as at be by can do does for from give has have how in is it its me my of on or our please "
        "show some tell that the their there these this to us want was we what when where which who will with you your",
    )
)


def words(text: str) -> list[str]:
    """The words of a text that carry meaning, in a crude base form."""
    found = _WORD.findall(text[:50_000].lower())[:_MAX_WORDS]
    return [_base(word) for word in found if word not in _FILLERS]


def _base(word: str) -> str:
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def rank(need: str, texts: Sequence[str]) -> list[tuple[float, int]]:
    """Score and index of the texts that share a word with the need, best first. Scores lie in (0, 1]."""
    wanted = set(words(need))
    if not wanted:
        return []
    contents = [set(words(text)) for text in texts]
    weights = _weights(wanted, contents)
    total = sum(weights.values())
    scored = [
        (round(sum(weights[word] for word in wanted & content) / total, 4), index)
        for index, content in enumerate(contents)
        if wanted & content
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))


def _weights(wanted: set[str], contents: Iterable[set[str]]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    size = 0
    for content in contents:
        size += 1
        counts.update(wanted & content)
    return {word: 1.0 + math.log((1 + size) / (1 + counts[word])) for word in wanted}
