"""Signal of embeddings: names whose vectors are close, with the extra `embeddings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bespeak.checks.alignment.names import Name

Embed = Callable[[Sequence[str]], Any]
"""Function from texts to a matrix with a vector of length 1 for each."""

_NEAR: Final = 0.85
"""Cosine from which a pair is a candidate even if its names have different words."""
_NEAREST: Final = 5
_ROWS: Final = 256


class Vectors:
    """Vectors of the names of two ontologies."""

    def __init__(
        self, embed: Embed, source: Mapping[str, Sequence[Name]], target: Mapping[str, Sequence[Name]]
    ) -> None:
        self._sides = [[(iri, name) for iri in sorted(side) for name in side[iri]] for side in (source, target)]
        self._matrices: list[Any] = [
            embed([" ".join(name.words) for _, name in side]) if side else None for side in self._sides
        ]
        self._places = [{name: place for place, (_, name) in enumerate(side)} for side in self._sides]

    def cosine(self, source: Name, target: Name) -> float:
        """Return the similarity of two names."""
        ours, theirs = self._matrices
        return max(0.0, float(ours[self._places[0][source]] @ theirs[self._places[1][target]]))

    def near(self) -> dict[str, dict[str, tuple[float, Name, Name]]]:
        """Return the closest target terms of the source terms, with the names that are close."""
        found: dict[str, dict[str, tuple[float, Name, Name]]] = {}
        ours, theirs = self._matrices
        if ours is None or theirs is None:
            return found
        for start in range(0, len(self._sides[0]), _ROWS):
            block = ours[start : start + _ROWS] @ theirs.T
            rows, places = (block >= _NEAR).nonzero()
            pairs = [
                (row, -float(block[row, place]), place)
                for row, place in zip(rows.tolist(), places.tolist(), strict=True)
            ]
            for row, negative, place in sorted(pairs):
                iri, name = self._sides[0][start + row]
                other, twin = self._sides[1][place]
                best = found.setdefault(iri, {})
                if len(best) < _NEAREST and (other not in best or best[other][0] < -negative):
                    best[other] = (-negative, name, twin)
        return found
