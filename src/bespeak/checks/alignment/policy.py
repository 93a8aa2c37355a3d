"""Local policy of alignments: thresholds, weights of the signals, and the order in which conflicts are resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Band = Literal["accept", "policy", "ask", "reject"]
"""What a score means: accepted, accepted if policy allows it, a question for a person, or rejected."""

Criterion = Literal["policy", "confidence", "override"]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds and weights. The defaults are the ones measured on public benchmarks."""

    accept: float = 0.95
    """Score from which a mapping is accepted without further conditions."""
    threshold: float = 0.75
    """Score from which a mapping of classes or individuals is accepted, marked as unconfirmed."""
    property_threshold: float = 0.70
    """The same for properties, whose scores are products."""
    ask: float = 0.60
    """Score from which a person is asked; below it, a mapping is rejected."""
    unconfirmed: bool = True
    """False if mappings below `accept` need a confirmation, too."""
    structure: float = 0.1
    behavior: float = 0.2
    history: float = 0.1
    embedding: float = 0.2
    one_to_one: bool = True
    """True if a term has at most one counterpart."""
    order: tuple[Criterion, ...] = ("policy", "confidence", "override")
    """Order in which several mappings of one term are resolved (IoA 7.3)."""
    ranks: Mapping[str, int] = {}
    """Rank of those who sign artifacts by key id, 0 without an entry. It comes before `order`."""
    priorities: Mapping[str, int] = {}
    """Local priority of mappings by author, tool, source, justification, or `override`; higher ones first."""

    def band(self, score: float, *, of_property: bool = False) -> Band:
        """Return what a score means."""
        if score >= self.accept:
            return "accept"
        if score >= (self.property_threshold if of_property else self.threshold):
            return "policy"
        return "ask" if score >= self.ask else "reject"

    def accepts(self, band: Band) -> bool:
        """Return True if a mapping in a band may be used without asking."""
        return band == "accept" or (band == "policy" and self.unconfirmed)
