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
    object: float  # cosine of the need without its verb, that is with what something is done
    named: float  # share of what the need says beside its verb that is in the endpoint
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
            self.object,
            self.named,
            float(self.named <= 0.0) * max(self.verb - 0.5, 0.0),
        )


WEIGHTS: Final[dict[str, tuple[float, ...]]] = {
    "words": (
        -2.209, 1.967, 1.854, -0.076, 3.638, 2.012, 1.344,
        0.404, -1.218, -0.859, 1.323, 2.747, 0.437, -2.722,
    ),
    "wordllama": (
        -2.170, 2.122, 2.628, -0.460, 3.570, 1.927, 1.541,
        0.318, -0.841, -0.610, 1.400, 2.766, 0.670, -2.773,
    ),
    "minilm": (
        -2.985, 3.028, 2.699, 0.097, 3.575, 1.482, 0.879,
        0.367, -0.872, -0.377, 1.292, 3.922, 0.801, -2.374,
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
