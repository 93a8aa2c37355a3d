"""A guess: what an importer wrote although the description does not say it, for a person to confirm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Risk = Literal["high", "medium", "low"]

RISKS: Final[tuple[Risk, ...]] = ("high", "medium", "low")
"""The gravest first."""

UNSURE: Final = 0.7
"""Below this a guess is doubtful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One decision that somebody has to look at."""

    at: str
    """Pointer from the endpoint: `/semantic/impact`."""
    text: str
    """What was written, in a few words."""
    why: str
    """What it was concluded from."""
    confidence: float
    otherwise: str = ""
    """What else it could be."""
    risk: Risk = "low"

    @property
    def comment(self) -> str:
        """The guess as it stands beside what it is about."""
        other = f"; else {self.otherwise}" if self.otherwise else ""
        return f"review ({self.confidence:.1f}): {self.text}: {self.why}{other}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a description that has no place in the deployment."""

    what: str
    why: str
