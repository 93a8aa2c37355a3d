"""Guesses: values an importer wrote without support in the description, for a person to confirm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Risk = Literal["high", "medium", "low"]

RISKS: Final[tuple[Risk, ...]] = ("high", "medium", "low")  # risks, highest first
UNSURE: Final = 0.7  # confidence below which a guess is doubtful
_SURE: Final = 0.8  # confidence from which a guess of low risk needs no comment
UNREVIEWED: Final = "Published as unreviewed."  # first words of the comment before `reviewed = false`

MARKER: Final = re.compile(r"#[ \t]*+review \(([0-9.]++)\): ?(.*+)")
"""Comment of a guess, with its confidence and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One decision for a person to review."""

    at: str  # pointer from the endpoint: `/semantic/impact`
    text: str  # summary of the written value
    why: str  # evidence for it
    confidence: float
    otherwise: str = ""  # alternative to it; empty if there is none
    risk: Risk = "low"

    @property
    def is_minor(self) -> bool:
        """True if only REVIEW.md mentions it: a comment in every file would hide the guesses that matter."""
        return self.risk == "low" and (self.confidence >= _SURE or self.at == "/semantic/confidence")

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
