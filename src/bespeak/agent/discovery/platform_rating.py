"""Rating that the public platform for /.well-known/ai documents gives, computed by its own rules.

The platform checks less than the draft: no types, lengths, patterns or headers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bespeak.documents.ai.document import METHODS
from bespeak.text.reading.untyped import as_list, as_mapping

_GRADES: Final = ((90, "Excellent"), (70, "Good"), (50, "Basic"), (0, "Poor"))
_SECONDS: Final = 3.0
"""Limit of the platform for a response; a later one counts as none."""
_NEEDED: Final = ("id", "description", "endpoint", "method")
_WITH: Final = re.compile(r"\bwith\b", re.ASCII)


class Rating(NamedTuple):
    """Points out of 100, and their grade."""

    points: int
    grade: str


def read_platform_data(body: bytes) -> object:
    """Parse a document as the platform does: any media type, and the last of repeated keys; None if it is not JSON."""
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def rate(data: object, seconds: float | None) -> Rating:
    """Rate a document by its members and response time; None is a missing document."""
    if not _holds(data) or (seconds is not None and seconds > _SECONDS):
        return _rating(0)
    if not isinstance(data, dict):
        return _rating(15)
    service = as_mapping(data.get("service"))
    capabilities = [as_mapping(entry) for entry in as_list(data.get("capabilities"))]
    category = service.get("category")
    points = 15 + 9 * _holds(data.get("aiendpoint")) + 8 * bool(capabilities) + _quality(capabilities)
    points += 9 * _is_text(service.get("name")) + 9 * _is_text(service.get("description"))
    points += 5 * (isinstance(category, list) and bool(category))
    points += 5 * _holds(data.get("auth")) + 5 * _holds(as_mapping(data.get("meta")).get("last_updated"))
    return _rating(points + _economy(data, _length(service.get("description")), capabilities))


def is_specific(returns: object) -> bool:
    """Return True if a `returns` text names fields, as the platform judges it."""
    # JavaScript writes a list with commas, and any object as this.
    text = "[object Object]" if isinstance(returns, dict) else returns
    text = ",".join(map(str, text)) if isinstance(text, list) else text if isinstance(text, str) else ""
    return len(text) > 5 and ("," in text or "[" in text or _WITH.search(text) is not None)


def _rating(points: int) -> Rating:
    return Rating(points, next(grade for least, grade in _GRADES if points >= least))


def _quality(capabilities: list[dict[str, Any]]) -> int:
    if not capabilities:
        return 0
    each = (
        5 + 2 * (entry["method"] in METHODS) + 3 * _holds(entry.get("returns"))
        for entry in capabilities
        if all(_holds(entry.get(key)) for key in _NEEDED)
    )
    return _round(20 * sum(each) / (10 * len(capabilities)))


def _economy(data: Mapping[str, Any], described: int, capabilities: list[dict[str, Any]]) -> int:
    points = 4 if 20 <= described <= 150 else 2 if described else 0
    points += 4 * _holds(data.get("token_hints"))
    if capabilities:
        mean = sum(_length(entry.get("description")) for entry in capabilities) / len(capabilities)
        points += 3 if 10 <= mean <= 100 else 1 if mean > 100 else 0
        points += _round(4 * sum(is_specific(entry.get("returns")) for entry in capabilities) / len(capabilities))
    return points


def _holds(value: object) -> bool:
    """Return True if JavaScript takes the value for true: every object and array, even an empty one."""
    return isinstance(value, dict | list) or bool(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _round(value: float) -> int:
    """Round halves up, as JavaScript does."""
    return math.floor(value + 0.5)


def _length(value: object) -> int:
    """Return the length of a text in UTF-16 units, as JavaScript counts; 0 for anything else."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(value, str) else 0
