"""How sure a match is: a logistic of what its list looks like, fitted by `tools/matching/fit.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

FLOOR: Final = 0.3  # confidence below which it is more likely that no endpoint serves a need
_DOUBT: Final = 0.25  # most that a doubtful match has
TIE: Final = 0.02  # lead, in units of the score, from which a match is likelier than the runner-up
_LEAST: Final = 0.1  # most that a match has for which nothing speaks; it rises with the score
_RISE: Final = 4.0
_FEW: Final = 12  # endpoints from which a list says what is usual


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
        # Among few endpoints deviations say little: one is always far ahead of the others.
        tiny = max(1.0 - math.log(max(self.size, 1)) / math.log(_FEW), 0.0)
        shared = min(self.words, 1.0)
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
            min(self.lead, 0.3),
            float(self.words <= 0.0),
            tiny,
            tiny * self.cosine,
            tiny * shared,
            tiny * min(self.margin, 3.0),
            tiny * min(self.lead, 0.3),
            tiny * min(self.score, 1.0),
            tiny * float(self.words <= 0.0),
            tiny * max(self.verb - 0.5, 0.0),
        )


WEIGHTS: Final[dict[str, tuple[float, ...]]] = {
    "words": (
        -0.888, 1.732, 2.708, 1.396, 3.970, 2.180, 1.124, 0.227, -0.074, -1.837, -1.218,
        1.167, -0.320, 0.463, 0.446, -0.506, -0.007, 0.956, -1.297, -1.096, 0.232,
    ),
    "wordllama": (
        -0.602, 2.711, 2.222, 0.516, 3.398, 1.222, 1.461, 0.310, 0.302, -1.575, -1.275,
        1.361, -0.032, -0.882, 0.715, -0.316, 0.338, 0.514, -0.087, -0.447, 0.064,
    ),
    # Fitted on large maps only: what is seen of small ones has no weight yet.
    "minilm": (
        -1.001, 1.594, 0.448, 0.875, 1.400, 1.021, 0.688, 1.059, 1.240, -0.895, -1.168,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000,
    ),
}  # fmt: skip


def confidence(backend: str, signals: Signals, weights: Sequence[float] | None = None) -> float:
    """Return how often the best match of such a list is right, 0 to 1. `weights` are for fitting them."""
    weights = weights or WEIGHTS.get(backend, WEIGHTS["wordllama"])
    total = sum(weight * value for weight, value in zip(weights, signals.features(), strict=True))
    chance = 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))
    # Fitted weights do not know what they have never seen: nearly nothing that speaks for a match, or as much for two.
    most = min(_LEAST + _RISE * max(signals.score, 0.0), 1.0 / (1.0 + math.exp(-max(signals.lead, 0.0) / TIE)))
    return round(min(chance, most, _DOUBT if signals.doubtful else 1.0), 4)
