"""How sure a match is: a logistic of what its list looks like, fitted by `tools/matching/fit.py`."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

FLOOR: Final = 0.3  # confidence below which it is more likely that no endpoint serves a need


class Signals(NamedTuple):
    """What is seen of the best match of a list."""

    cosine: float
    cosine_margin: float  # to the best of the others
    words: float  # share of what the words of the need say that is in the endpoint
    words_margin: float
    verb: float
    margin: float  # to the runner-up, in deviations
    score: float
    terms: int
    size: int

    def features(self) -> tuple[float, ...]:
        return (
            1.0,
            self.cosine,
            max(min(self.cosine_margin, 0.3), -0.1),
            self.words,
            self.words_margin,
            self.verb - 0.5,
            min(self.margin, 3.0),
            min(self.score, 1.0),
            1.0 / max(self.terms, 1),
            math.log(max(self.size, 1)) / 5.0,
        )


WEIGHTS: Final[dict[str, tuple[float, ...]]] = {
    "words": (-0.245, 0.755, 3.301, 2.542, 3.073, 1.181, 0.421, 1.617, -3.609, -1.799),
    "wordllama": (-0.379, 2.988, 1.220, 1.323, 2.693, 1.004, 0.566, 1.048, -2.681, -1.981),
}


def confidence(backend: str, signals: Signals) -> float:
    """Return how often the best match of such a list is right, 0 to 1."""
    weights = WEIGHTS.get(backend, WEIGHTS["wordllama"])
    total = sum(weight * value for weight, value in zip(weights, signals.features(), strict=True))
    return round(1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0))), 4)
