"""How sure a match is: a logistic of what its list looks like, fitted by `tools/matching/fit.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

FLOOR: Final = 0.3  # confidence below which it is more likely that no endpoint serves a need
_DOUBT: Final = 0.12  # most that a doubtful match has
TIE: Final = 0.02  # lead, in units of the score, from which a match is likelier than the runner-up
_LEAST: Final = 0.1  # most that a match has for which nothing speaks; it rises with the score
_RISE: Final = 4.0


class Signals(NamedTuple):
    """What is seen of the best match of a list."""

    cosine: float
    cosine_margin: float  # to the best of the others
    words: float  # share of what the words of the need say that is in the endpoint
    words_margin: float
    verb: float
    margin: float  # to the runner-up, in deviations
    lead: float  # to the runner-up, in units of the score
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
            1.0 / max(self.terms, 1),
            math.log(max(self.size, 1)) / 5.0,
            float(self.words <= 0.0),
        )


WEIGHTS: Final[dict[str, tuple[float, ...]]] = {
    "words": (-1.592, 4.019, 2.967, 0.521, 2.957, 1.608, 1.585, 0.411, -1.588, -1.094, 0.427),
    "wordllama": (-1.585, 4.334, 3.191, 0.320, 2.718, 1.318, 1.780, 0.467, -1.335, -0.950, 0.522),
    "minilm": (-2.374, 6.235, 4.312, 0.441, 3.536, 1.066, 1.326, 0.348, -0.815, -0.785, 0.426),
}


def confidence(backend: str, signals: Signals, weights: Sequence[float] | None = None) -> float:
    """Return how often the best match of such a list is right, 0 to 1. `weights` are for fitting them."""
    weights = weights or WEIGHTS.get(backend, WEIGHTS["wordllama"])
    total = sum(weight * value for weight, value in zip(weights, signals.features(), strict=True))
    chance = 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))
    # Fitted weights do not know what they have never seen: nearly nothing that speaks for a match, or as much for two.
    most = min(_LEAST + _RISE * max(signals.score, 0.0), 1.0 / (1.0 + math.exp(-max(signals.lead, 0.0) / TIE)))
    return round(min(chance, most, _DOUBT if signals.doubtful else 1.0), 4)
