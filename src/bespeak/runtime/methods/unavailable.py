"""Floor methods that this server cannot carry out: a 501 that names what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.lifecycle import CHANGES
from bespeak.runtime.methods.needs import RESOURCES, STORE, not_available

MISSING: Final[Mapping[str, str]] = {
    "SUMMARIZE": "a summarizer",
}
"""Requirement of each method; an operator who can fulfil it binds the method to a handler at `/`."""

_STATEFUL: Final = frozenset(
    {
        *("DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY", "RESUME", "INSPECT"),
        *(change.method.name for change in CHANGES),
    }
)


def find_missing(method: str, *, stored: bool, searchable: bool) -> str | None:
    """Return what a server lacks to carry out a built-in method at `/`; None if it works.

    All published documents say what this function says.
    """
    if method == "QUERY" and not searchable:
        return RESOURCES
    return STORE if method in _STATEFUL and not stored else MISSING.get(method)


def unavailable(method: str) -> Callable[[RoutedCall], Refused]:
    """Build the handler of a floor method that this server admits but cannot carry out."""
    advice = f" The operator of this server can bind {method} / to a handler."
    refused = not_available(method, MISSING[method], advice)

    def answer(_: RoutedCall) -> Refused:
        return refused

    return answer
