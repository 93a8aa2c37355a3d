"""What a wrong guess about an endpoint could do: a review begins with the worst."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.documents.adoption.candidate import READING
from bespeak.documents.adoption.naming import singular, words
from bespeak.text.language.operation_class import operation_classes

DANGERS: Final = {
    "money": "moves money",
    "deletion": "deletes",
    "irreversible": "cannot be undone",
    "reading": "counts as reading, although its HTTP method changes things",
    "doubt": "is in doubt",
    "": "",
}
"""Dangers with their phrases, the worst first; the empty key means that there is no danger."""

_DOUBTFUL: Final = 0.5
"""Confidence below which a guess is in doubt."""
_WEIGHTY: Final = ("/method", "/path", "/semantic/impact", "/semantic/is_idempotent", "/handler")
"""Parts of an endpoint that decide what a call does."""
_MONEY: Final = frozenset(
    {
        *("pay", "payment", "charge", "payout", "refund", "purchase", "checkout", "debit", "credit", "deposit"),
        *("withdrawal", "withdraw", "donation", "donate", "transfer", "billing", "settlement", "topup", "buy", "sell"),
        *("invoice", "disbursement", "remittance", "payroll", "tip", "wire"),
    }
)


def is_weighty(at: str) -> bool:
    """Return True if a part of an endpoint decides what a call does."""
    return at.startswith(_WEIGHTY)


def danger_of(endpoint: Endpoint, guesses: Iterable[tuple[str, float]] = ()) -> str:
    """Return the worst danger of an endpoint, a key of DANGERS. `guesses` are pointers with their confidence."""
    impact, handler = endpoint.semantic.impact, endpoint.handler
    method = handler.method if isinstance(handler, ExternalService) else ""
    if impact != "informational":
        if not _MONEY.isdisjoint(_acted_on(endpoint)):
            return "money"
        classes = operation_classes(endpoint.method.lower())
        if method == "DELETE" or (classes is not None and classes.main == "DELETE"):
            return "deletion"
        if impact == "irreversible":
            return "irreversible"
    elif method and method not in READING:
        return "reading"
    doubtful = any(confidence < _DOUBTFUL and is_weighty(at) for at, confidence in guesses)
    return "doubt" if doubtful else ""


def _acted_on(endpoint: Endpoint) -> set[str]:
    """Return the words for what a call does: its method and the last names in the paths, here and upstream."""
    handler = endpoint.handler
    paths = [endpoint.path, urlsplit(handler.url).path if isinstance(handler, ExternalService) else ""]
    last = [[part for part in path.split("/") if part and "{" not in part][-1:] for path in paths]
    return {
        singular(word)
        for part in (endpoint.method, *(name for names in last for name in names))
        for word in words(part)
    }
