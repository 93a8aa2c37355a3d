"""Calibration: how often a mapping with a score is right."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

# Score, and the precision of the accepted pairs around it: an isotonic table over public benchmarks of classes
# (with many synonyms, and with few names) and of properties.
_CLASSES: Final = (
    (0.0, 0.0),
    (0.5, 0.1),
    (0.65, 0.27),
    (0.72, 0.46),
    (0.78, 0.66),
    (0.88, 0.8),
    (0.96, 0.94),
    (1.0, 0.98),
)
_PROPERTIES: Final = ((0.0, 0.0), (0.5, 0.1), (0.7, 0.5), (0.8, 0.62), (0.95, 0.8), (1.0, 0.88))


def calibrate(score: float, *, of_property: bool = False) -> float:
    """Return the confidence of a score, 0 to 1; a higher score never has a lower confidence."""
    table = _PROPERTIES if of_property else _CLASSES
    score = min(max(score, 0.0), 1.0)
    place = min(bisect_right(table, (score, 2.0)), len(table) - 1)
    (low, least), (high, most) = table[place - 1], table[place]
    return round(least + (most - least) * (score - low) / (high - low), 4)
