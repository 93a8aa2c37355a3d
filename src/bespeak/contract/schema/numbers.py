"""Numbers that Python has but JSON lacks."""

from __future__ import annotations

import math

from bespeak.contract.schema.violation import Violation
from bespeak.text.source.pointer import child


def non_finite(value: object) -> list[Violation]:
    """Return the place of an infinity or NaN in a value."""
    found: list[Violation] = []
    waiting = [("", value)]
    while waiting:
        at, part = waiting.pop()
        if isinstance(part, float) and not math.isfinite(part):
            found.append(Violation(at, "", "type", f"{part} is not a JSON number"))
        elif isinstance(part, dict):
            waiting += [(child(at, str(name)), item) for name, item in part.items()]
        elif isinstance(part, list | tuple):
            waiting += [(child(at, index), item) for index, item in enumerate(part)]
    return found
