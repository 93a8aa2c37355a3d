"""Score in points: by parts, with the possible gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Part of the 100 points."""

    name: str
    points: float
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Possible improvement, and its points."""

    points: float
    part: str
    what: str
    rules: tuple[str, ...] = ()
    """Rules whose findings give details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of one subject. The points of its parts and its gains add up to 100."""

    subject: str
    """Scored subject: the address of a host."""
    parts: Sequence[Part]
    gains: Sequence[Gain] = ()
    """Possible improvements, largest first."""
    rating: tuple[int, str] | None = None
    """Points out of 100 and grade by the public platform for discovery documents, whose rules are more lenient; None if
    unknown.
    """

    @property
    def points(self) -> int:
        """Whole points; 100 only if nothing is missing."""
        return math.floor(sum(part.points for part in self.parts) + 1e-6)


def score_lines(score: Score) -> list[str]:
    """Format the score for people: total, parts, possible gains."""
    said = f"score {score.points}/100"
    if score.rating is not None:
        points, grade = score.rating
        said += f' (the platform\'s own rating: {points}, "{grade}")'
    widest = max((len(part.name) for part in score.parts), default=0)
    lines = [f"{score.subject}: {said}"]
    lines += [f"  {part.name:<{widest}}  {shown(part.points):>5} of {part.of}" for part in score.parts]
    for gain in score.gains:
        rules = f" ({', '.join(gain.rules)})" if gain.rules else ""
        lines.append(f"  +{shown(gain.points):<4} {gain.what}{rules}")
    return lines


def score_entry(score: Score) -> dict[str, Any]:
    """Convert the score to plain data."""
    return {
        "subject": score.subject,
        "points": score.points,
        "parts": [{"name": part.name, "points": round(part.points, 2), "of": part.of} for part in score.parts],
        "gains": [
            {"points": round(gain.points, 2), "part": gain.part, "what": gain.what, "rules": list(gain.rules)}
            for gain in score.gains
        ],
        "platform": None if score.rating is None else {"points": score.rating[0], "grade": score.rating[1]},
    }


def shown(points: float) -> str:
    """Format points with at most one decimal."""
    return f"{round(points, 1):g}"
