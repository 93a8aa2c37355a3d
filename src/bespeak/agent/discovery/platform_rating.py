"""Rating that the public platform for /.well-known/ai documents would give, as measured.

The platform checks less than the draft: no types, lengths, patterns or headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bespeak.documents.ai.document import METHODS

_GRADES: Final = ((90, "Excellent"), (70, "Good"), (50, "Basic"), (0, "Poor"))
_SECONDS: Final = 3.0


class Rating(NamedTuple):
    """Points out of 100, and their grade."""

    points: int
    grade: str


def rate(data: Mapping[str, Any] | None, seconds: float | None) -> Rating:
    """Rate a document by its members and response time; None is a missing document or one that is not a JSON object."""
    if data is None:
        return Rating(0, "Poor")
    service = _object(data.get("service"))
    entries = data.get("capabilities")
    capabilities = [_object(entry) for entry in entries] if isinstance(entries, list) else []
    points = 10.0 + (5 if seconds is None or seconds <= _SECONDS else 0)
    points += 9 * bool(data.get("aiendpoint")) + 9 * bool(service.get("name")) + 9 * bool(service.get("description"))
    points += 8 * bool(capabilities)
    points += _quality(capabilities)
    meta = _object(data.get("meta"))
    points += 5 * bool(service.get("category")) + 5 * bool(data.get("auth")) + 5 * bool(meta.get("last_updated"))
    points += _economy(data, _length(service.get("description")), capabilities)
    whole = round(points)
    return Rating(whole, next(grade for least, grade in _GRADES if whole >= least))


def is_specific(returns: object) -> bool:
    """Return True if a `returns` text names fields, as the platform judges it."""
    return isinstance(returns, str) and len(returns) > 5 and ("," in returns or "[" in returns or "with" in returns)


def _quality(capabilities: list[Mapping[str, Any]]) -> float:
    if not capabilities:
        return 0.0
    needed = ("id", "description", "endpoint", "method")
    each = (
        5 * all(entry.get(key) for key in needed)
        + 2 * (entry.get("method") in METHODS)
        + 3 * bool(entry.get("returns"))
        for entry in capabilities
    )
    return 20 * sum(each) / (10 * len(capabilities))


def _economy(data: Mapping[str, Any], described: int, capabilities: list[Mapping[str, Any]]) -> float:
    points = 4.0 if 20 <= described <= 150 else 2.0 if described else 0.0
    points += 4 * bool(data.get("token_hints"))
    if capabilities:
        mean = sum(_length(entry.get("description")) for entry in capabilities) / len(capabilities)
        points += 3 if 10 <= mean <= 100 else 1 if mean > 100 else 0
        points += 4 * sum(is_specific(entry.get("returns")) for entry in capabilities) / len(capabilities)
    return points


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
