"""How good something is, in points: by parts, with what would raise it and by how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of the hundred points."""

    name: str
    points: float
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Something to do, and the points it brings."""

    points: float
    part: str
    what: str
    rules: tuple[str, ...] = ()
    """The rules whose findings say more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The points of one subject. Those of its parts and its gains are a hundred together."""

    subject: str
    """What was scored: the address of a host."""
    parts: Sequence[Part]
    gains: Sequence[Gain] = ()
    """The largest first."""
    rating: int = 0
    """What the public platform for discovery documents would give, out of a hundred, by its own and lighter rules."""
    grade: str = ""
    """Its word for that."""

    @property
    def points(self) -> int:
        """Whole points; a hundred only if nothing is missing."""
        return math.floor(sum(part.points for part in self.parts) + 1e-6)


def score_lines(score: Score) -> list[str]:
    """The score for people: the whole, its parts, what would raise it."""
    said = f'score {score.points}/100 (the platform\'s own rating: {score.rating}, "{score.grade}")'
    widest = max((len(part.name) for part in score.parts), default=0)
    lines = [f"{score.subject}: {said}"]
    lines += [f"  {part.name:<{widest}}  {shown(part.points):>5} of {part.of}" for part in score.parts]
    for gain in score.gains:
        rules = f" ({', '.join(gain.rules)})" if gain.rules else ""
        lines.append(f"  +{shown(gain.points):<4} {gain.what}{rules}")
    return lines


def score_entry(score: Score) -> dict[str, Any]:
    """The score for programs."""
    return {
        "subject": score.subject,
        "points": score.points,
        "parts": [{"name": part.name, "points": round(part.points, 2), "of": part.of} for part in score.parts],
        "gains": [
            {"points": round(gain.points, 2), "part": gain.part, "what": gain.what, "rules": list(gain.rules)}
            for gain in score.gains
        ],
        "platform": {"points": score.rating, "grade": score.grade},
    }


def shown(points: float) -> str:
    """Points with one digit behind the point at most."""
    return f"{round(points, 1):g}"
