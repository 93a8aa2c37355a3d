"""How sure a match is: a logistic of what its list looks like, fitted by `tools/matching/fit.py`."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

FLOOR: Final = 0.3  # confidence below which it is more likely that no endpoint serves a need
_DOUBT: Final = 0.25  # most that a doubtful match has


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
    doubtful: bool  # the method does the contrary, or the need does not say with what

    def features(self) -> tuple[float, ...]:
        return (
            1.0,
            self.cosine,
            max(min(self.cosine_margin, 0.3), -0.1),
            self.words,
            self.words_margin,
            max(self.verb - 0.5, 0.0),
            min(self.verb - 0.5, 0.0),
            min(self.margin, 3.0),
            min(self.score, 1.0),
            1.0 / max(self.terms, 1),
            math.log(max(self.size, 1)) / 5.0,
        )


WEIGHTS: Final[dict[str, tuple[float, ...]]] = {
    "words": (-0.101, 0.827, 2.477, 2.113, 3.430, 1.820, 0.582, 0.470, 1.004, -3.327, -1.800),
    "wordllama": (0.108, 1.651, 1.044, 1.322, 3.101, 1.153, 0.932, 0.578, 1.189, -2.925, -1.786),
    "minilm": (-1.001, 1.594, 0.448, 0.875, 1.400, 1.021, 0.688, 1.059, 1.240, -0.895, -1.168),
}


def confidence(backend: str, signals: Signals) -> float:
    """Return how often the best match of such a list is right, 0 to 1."""
    weights = WEIGHTS.get(backend, WEIGHTS["wordllama"])
    total = sum(weight * value for weight, value in zip(weights, signals.features(), strict=True))
    chance = 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))
    return round(min(chance, _DOUBT) if signals.doubtful else chance, 4)
