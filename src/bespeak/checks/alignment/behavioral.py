"""Behavioral signal: what capabilities take and return, and how a mapping has worked before (IoA 7.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from bespeak.checks.alignment.words import words_of
from bespeak.contract.ontology.term import Term

_MOST_MEMBERS: Final = 100
_SEVERAL: Final = 5.0
"""Number of calls after which the history counts half."""


class History(msgspec.Struct, frozen=True):
    """How often calls through a mapping succeeded."""

    succeeded: int
    failed: int

    @property
    def rate(self) -> float:
        """Smoothed rate of success: half without any call."""
        return (self.succeeded + 1) / (self.succeeded + self.failed + 2)

    @property
    def reliability(self) -> float:
        """Weight of the history, which grows with the number of calls."""
        calls = self.succeeded + self.failed
        return calls / (calls + _SEVERAL)


Histories = Mapping[tuple[str, str], History]
"""History by source and target of a mapping."""


def behavioral(source: Term, target: Term) -> float | None:
    """Return whether one capability can stand in for another, 0 to 1; None if they do not declare enough.

    What callers send for the source must be accepted by the target, and what the target returns must be what callers
    of the source can read.
    """
    parts = [
        _coverage(given, taken)
        for given, taken in ((source.inputs, target.inputs), (target.outputs, source.outputs))
        if given and taken
    ]
    return sum(parts) / len(parts) if parts else None


def _coverage(given: Sequence[str], taken: Sequence[str]) -> float:
    """Return the mean, over what is given, of the best counterpart that is taken."""
    best = [max(_compare(one, other) for other in taken[:20]) for one in given[:20]]
    return sum(best) / len(best)


def _compare(given: str, taken: str) -> float:
    schemas = _schema(given), _schema(taken)
    if schemas[0] is not None and schemas[1] is not None:
        return _compare_schemas(schemas[0], schemas[1])
    if schemas[0] is not None or schemas[1] is not None:
        text = given if schemas[1] is not None else taken
        return 0.8 if "json" in text or text.strip() == "*/*" else 0.1
    return _compare_media(given, taken)


def _compare_media(given: str, taken: str) -> float:
    (kind, sub), (other, wanted) = (_media(text) for text in (given, taken))
    if (kind, sub) == (other, wanted):
        return 1.0
    if other == "*" or (kind == other and wanted == "*"):
        return 0.95
    if kind == "*" or (kind == other and sub == "*"):
        return 0.6
    # application/fhir+json is JSON, whatever else it is.
    if kind == other and sub.rpartition("+")[2] == wanted.rpartition("+")[2]:
        return 0.7 if "+" in sub else 0.5
    return 0.3 if kind == other == "text" else 0.0


def _media(text: str) -> tuple[str, str]:
    kind, _, sub = text.partition(";")[0].strip().lower().partition("/")
    return kind, sub


@lru_cache(maxsize=4_096)
def _schema(text: str) -> Mapping[str, Any] | None:
    """Return the JSON Schema that a text holds, or None."""
    if not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _compare_schemas(given: Mapping[str, Any], taken: Mapping[str, Any]) -> float:
    """Compare the types, and of objects the members: what is required must be given."""
    if (alike := _compare_types(given.get("type"), taken.get("type"))) == 0.0:
        return 0.0
    ours, theirs = _members(given), _members(taken)
    if not theirs:
        return alike
    required = taken.get("required")
    needed = {words_of(name) for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    wanted = [name for name in theirs if name in needed] or list(theirs)
    found = [_compare_types(_type(ours[name]), _type(theirs[name])) if name in ours else 0.0 for name in wanted]
    return alike * sum(found) / len(found)


def _members(schema: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    members = schema.get("properties")
    return (
        {words_of(name): part for name, part in list(members.items())[:_MOST_MEMBERS]}
        if isinstance(members, dict)
        else {}
    )


def _type(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else None


def _compare_types(given: Any, taken: Any) -> float:
    ours, theirs = (
        {kind}
        if isinstance(kind, str)
        else {one for one in kind if isinstance(one, str)}
        if isinstance(kind, list)
        else set()
        for kind in (given, taken)
    )
    if not ours or not theirs:
        return 0.8
    if "number" in theirs and "integer" in ours:
        return 1.0
    return len(ours & theirs) / len(ours)
