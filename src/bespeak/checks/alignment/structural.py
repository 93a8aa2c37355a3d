"""Structural signal: terms whose parents, parts and children are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bespeak.contract.ontology.ontology import Ontology

_MOST_NEIGHBORS: Final = 24
_HIGHEST: Final = 4
"""Levels that are walked up."""

Neighbors = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""What is above a term, what it is a part of, and what is below it."""
_CHILDREN: Final = 2

Scores = Mapping[str, Mapping[str, float]]
"""Score by source and target."""


class Hierarchy:
    """Relations between the terms of one ontology, with a bounded number of neighbors for each."""

    def __init__(self, ontology: Ontology) -> None:
        self._up: dict[str, tuple[str, ...]] = {}
        self._fillers: dict[str, tuple[str, ...]] = {}
        self._down: dict[str, list[str]] = {}
        self._neighbors: dict[str, Neighbors] = {}
        for iri in sorted(ontology.terms):
            term = ontology.terms[iri]
            self._up[iri] = term.parents[:_MOST_NEIGHBORS]
            self._fillers[iri] = (*term.fillers, *term.requires, *term.in_domain, *term.applies_to)[:_MOST_NEIGHBORS]
            for parent in self._up[iri]:
                below = self._down.setdefault(parent, [])
                if len(below) < _MOST_NEIGHBORS:
                    below.append(iri)

    def neighbors(self, iri: str) -> Neighbors:
        """Return the neighbors of a term; two levels above it."""
        known = self._neighbors.get(iri)
        if known is None:
            parents = self._up.get(iri, ())
            above = dict.fromkeys((*parents, *(high for parent in parents for high in self._up.get(parent, ()))))
            known = (list(above)[:_MOST_NEIGHBORS], self._fillers.get(iri, ()), self._down.get(iri, ()))
            self._neighbors[iri] = known
        return known

    def ancestors(self, iri: str) -> set[str]:
        """Return the terms on some levels above a term."""
        found: set[str] = set()
        level = [iri]
        for _ in range(_HIGHEST):
            level = [high for one in level for high in self._up.get(one, ()) if high not in found][:_MOST_NEIGHBORS]
            found.update(level)
        return found


def structural(source: Neighbors, target: Neighbors, scores: Scores) -> float | None:
    """Return how well the neighbors of two terms agree, 0 to 1; None if there are none to compare."""
    parts: list[float] = []
    for place, (ours, theirs) in enumerate(zip(source, target, strict=True)):
        if not ours or not theirs:
            continue
        best = [
            max((found[other] for other in theirs if other in found), default=0.0)
            for one in ours
            if (found := scores.get(one))
        ]
        # One common parent or whole is enough; of the children, as many as both can have in common.
        count = 1 if place < _CHILDREN else min(len(ours), len(theirs))
        parts.append(sum(sorted(best)[-count:]) / count)
    return sum(parts) / len(parts) if parts else None
