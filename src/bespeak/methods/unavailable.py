"""Floor methods that nothing on this server can carry out yet: an honest 501 that names what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bespeak import status
from bespeak.exchange.context import Context
from bespeak.exchange.refusal import Refused

MISSING: Final[Mapping[str, str]] = {
    "SUMMARIZE": "a summarizer",
    "PLAN": "a planner",
    "EXECUTE": "registered actions",
    "NOTIFY": "a way to deliver notifications",
}
"""What each method would need; an operator who has it binds the method to a handler at `/`."""


def unavailable(method: str) -> Callable[[Context], Refused]:
    """The handler of a floor method this server admits but cannot carry out."""
    refused = Refused(
        status.NOT_IMPLEMENTED,
        "not-implemented",
        f"{method} is known here but not available, for want of {MISSING[method]}. "
        f"The operator of this server can bind {method} / to a handler.",
        {"method": method, "missing": MISSING[method]},
    )

    def answer(_: Context) -> Refused:
        return refused

    return answer
