"""Stage for properties: their names, times the agreement of their domains and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.checks.alignment.structural import Hierarchy, Scores
from bespeak.contract.ontology.namespace import XSD
from bespeak.contract.ontology.term import Term

_UNKNOWN: Final = 0.8
"""Agreement of properties that declare too little to compare."""
_DATA_RANGE: Final = 0.4
_RELATED: Final = 0.8
_INVERSE: Final = 0.5
_CLEARLY: Final = 0.25
_GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string", "normalizedString", "token", "language", "Name", "anyURI", "ID"), "text"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "decimal", "float", "double"), "number"),
    **dict.fromkeys(
        ("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong", "unsignedShort"), "number"
    ),
    **dict.fromkeys(("date", "dateTime", "time", "gYear", "gYearMonth", "dateTimeStamp"), "time"),
    "boolean": "boolean",
}


class PropertyStage:
    """Agreement of properties, judged by the classes that were aligned before."""

    def __init__(self, accepted: Mapping[str, str], scores: Scores, source: Hierarchy, target: Hierarchy) -> None:
        self._accepted, self._scores = accepted, scores
        self._source, self._target = source, target

    def agreement(self, one: Term, other: Term) -> tuple[float, dict[str, float]]:
        """Return the factor for the score of the names, and its parts."""
        domain, range_ = self._classes(one.domains, other.domains), self._classes(one.ranges, other.ranges)
        known = {name: value for name, value in (("domain", domain), ("range", range_)) if value is not None}
        # Most data properties hold texts: that says less than what has them.
        weights = {"domain": 1.0, "range": 1.0 if one.kind == "object_property" else _DATA_RANGE}
        total = sum(weights[name] for name in known)
        agreed = sum(weights[name] * value for name, value in known.items()) / total if total else _UNKNOWN
        factor = 0.5 + agreed / 2
        if one.kind == "object_property" and len(known) == 2:
            crossed = (self._classes(one.domains, other.ranges) or 0.0) + (
                self._classes(one.ranges, other.domains) or 0.0
            )
            # `hasAuthor` and `authorOf` have the same words, but lead in opposite directions.
            if crossed / 2 > agreed + _CLEARLY:
                factor *= _INVERSE
        return factor, known

    def _classes(self, ours: tuple[str, ...], theirs: tuple[str, ...]) -> float | None:
        """Return the agreement of the closest pair, so that a part of a union is enough; None if one side is empty."""
        if not ours or not theirs:
            return None
        return max(self._pair(one, other) for one in ours[:24] for other in theirs[:24])

    def _pair(self, one: str, other: str) -> float:
        if one == other or self._accepted.get(one) == other:
            return 1.0
        if one.startswith(XSD) or other.startswith(XSD):
            ours, theirs = (_GROUPS.get(iri.removeprefix(XSD), "other") for iri in (one, other))
            # Many ontologies write texts for everything.
            return 1.0 if ours == theirs else 0.6 if "text" in (ours, theirs) else 0.2
        counterpart = self._accepted.get(one)
        if counterpart is not None and (
            counterpart in self._target.ancestors(other) or other in self._target.ancestors(counterpart)
        ):
            return _RELATED
        if any(self._accepted.get(high) == other for high in self._source.ancestors(one)):
            return _RELATED
        return self._scores.get(one, {}).get(other, 0.0)
