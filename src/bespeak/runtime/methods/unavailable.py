"""Floor methods that nothing on this server can carry out yet: an honest 501 that names what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import not_available

MISSING: Final[Mapping[str, str]] = {
    "SUMMARIZE": "a summarizer",
    "PLAN": "a planner",
    "EXECUTE": "registered actions",
    "NOTIFY": "a way to deliver notifications",
}
"""What each method would need; an operator who has it binds the method to a handler at `/`."""


def unavailable(method: str) -> Callable[[RoutedCall], Refused]:
    """Make the handler of a floor method this server admits but cannot carry out."""
    advice = f" The operator of this server can bind {method} / to a handler."
    refused = not_available(method, MISSING[method], advice)

    def answer(_: RoutedCall) -> Refused:
        return refused

    return answer
