"""Guesses: values an importer wrote without support in the description, for a person to confirm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Risk = Literal["high", "medium", "low"]

RISKS: Final[tuple[Risk, ...]] = ("high", "medium", "low")  # risks, highest first
UNSURE: Final = 0.7  # confidence below which a guess is doubtful
UNREVIEWED: Final = "Published as unreviewed."  # first words of the comment before `reviewed = false`
MARKER: Final = re.compile(r"#[ \t]*+review \(([0-9.]++)\): ?(.*+)")  # comment of a guess: confidence and text


@dataclass(frozen=True, slots=True)
class Guess:
    """One decision for a person to review."""

    at: str  # pointer from the endpoint: `/semantic/impact`
    text: str  # summary of the written value
    why: str  # evidence for it
    confidence: float
    otherwise: str = ""  # alternative to it; empty if there is none
    risk: Risk = "low"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a description that is not in the deployment."""

    what: str
    why: str
