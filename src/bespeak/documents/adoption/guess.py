"""Guesses: values an importer wrote without support in the description, for a person to confirm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Risk = Literal["high", "medium", "low"]

RISKS: Final[tuple[Risk, ...]] = ("high", "medium", "low")
"""Risks, highest first."""

UNSURE: Final = 0.7
"""Confidence below which a guess is doubtful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One decision for a person to review."""

    at: str
    """Pointer from the endpoint: `/semantic/impact`."""
    text: str
    """Summary of the written value."""
    why: str
    """Evidence for it."""
    confidence: float
    otherwise: str = ""
    """Alternative to it; empty if there is none."""
    risk: Risk = "low"

    @property
    def comment(self) -> str:
        """Text of the comment beside the guessed value."""
        other = f"; else {self.otherwise}" if self.otherwise else ""
        return f"review ({self.confidence:.1f}): {self.text}: {self.why}{other}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a description that is not in the deployment."""

    what: str
    why: str
