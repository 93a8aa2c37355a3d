"""Errors of an endpoint: names for the statuses an upstream fails with, and the five that every upstream has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.handler import UPSTREAM_ERRORS
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.guess import Guess
from bespeak.documents.adoption.naming import words
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.text.language.sentence import word_set

_NAMES: Final = {
    "400": "invalid_input",
    "401": "not_authenticated",
    "402": "payment_required",
    "403": "not_permitted",
    "404": "not_found",
    "406": "format_not_offered",
    "408": "took_too_long",
    "409": "conflict",
    "410": "gone",
    "412": "precondition_failed",
    "413": "too_large",
    "415": "format_not_supported",
    "422": "invalid_values",
    "423": "locked",
    "424": "dependency_failed",
    "428": "precondition_required",
    "429": "rate_limited",
    "451": "legally_withheld",
    "501": "not_supported",
    "503": "temporarily_unavailable",
}
_TEXTS: Final = {
    "invalid_input": "The upstream does not accept the input.",
    "not_found": "The requested resource does not exist.",
    "conflict": "The request conflicts with the current state.",
    "invalid_values": "A value of the input is not valid.",
    "rate_limited": "Too many calls; try again later.",
    "upstream_timeout": "The upstream did not answer in time.",
    "upstream_connection_error": "The upstream could not be reached.",
    "upstream_malformed_response": "The answer of the upstream could not be read.",
    "upstream_authentication_failed": "The upstream refused this server.",
    "upstream_error": "The upstream failed.",
}
_OWN_TO_SERVER: Final = ("401", "403")  # They concern this server's credential, if one is sent, not the caller's input.
_RANGE: Final = {"4": ("400", "404", "409", "422", "429"), "5": ("503",)}
_GENERIC: Final = word_set(
    "error errors failure failed fault unknown exception problem other default unexpected invalid bad wrong badrequest "
    "response ok errorresponse apierror"
)
_ANY_FAILURE: Final = _GENERIC | {"request", "server", "internal", "http", "client", "api"}
"""Words of names that fit any failure: `bad_request`, `unexpected_error`."""
_SILENT: Final = frozenset({"a", "an", "the", "is", "was", "are", "be", "of", "or", "and", "to", "for", "this", "that"})
_LONGEST: Final = 40
_MOST_WORDS: Final = 4
_AT: Final = "/handler/error_map"


@dataclass(slots=True)
class ErrorShape:
    errors: tuple[DeclaredError, ...] = ()
    error_map: dict[str, str] = field(default_factory=dict)
    guesses: list[Guess] = field(default_factory=list)


def shape_errors(candidate: Candidate, *, has_credential: bool) -> ErrorShape:
    """Name the errors of a candidate. If this server sends a credential, 401 and 403 concern that credential."""
    documented = {status.upper(): text for status, text in candidate.failures.items()}
    shape = ErrorShape()
    described: dict[str, str] = {}
    for status, text in sorted(documented.items()):
        if len(status) == 3 and status.isdigit() and _is_named(status, has_credential=has_credential):
            name = _name(status, text)
            shape.error_map[status] = name
            described.setdefault(name, first_sentence(text, 200) or _TEXTS.get(name, ""))
            if fault := plain_text(text).fault:
                why = f"the upstream's text about {status} holds {fault}"
                shape.guesses.append(Guess("/errors", "left out", why, 0.3, risk="high"))
    added = [status for status in _assumed(candidate, documented) if status not in documented]
    for status in added:
        shape.error_map[status] = _NAMES[status]
        described.setdefault(_NAMES[status], _TEXTS.get(_NAMES[status], ""))
    if added:
        names = ", ".join(f"{status} {_NAMES[status]}" for status in sorted(added))
        why = "the description gives a range" if any("X" in status for status in documented) else "none is documented"
        shape.guesses.append(Guess(_AT, names, why, 0.6, "the upstream's actual answers"))
    if not has_credential and any(status in shape.error_map for status in _OWN_TO_SERVER):
        why = "no credential is sent, so 401 and 403 are the upstream's own answer to the caller"
        shape.guesses.append(Guess(_AT, "401 and 403 are named", why, 0.7, "upstream_authentication_failed"))
    shape.error_map = dict(sorted(shape.error_map.items()))
    described.update({name: _TEXTS[name] for name in UPSTREAM_ERRORS})
    shape.errors = tuple(DeclaredError(name, text) for name, text in described.items())
    return shape


def _is_named(status: str, *, has_credential: bool) -> bool:
    if status in _OWN_TO_SERVER:
        return not has_credential
    # Other 5xx statuses are upstream_error without a mapping.
    return not status.startswith("5") or status in ("501", "503")


def _assumed(candidate: Candidate, documented: dict[str, str]) -> tuple[str, ...]:
    """Return undocumented statuses to map: those of a documented range, or the usual ones if nothing is documented."""
    if candidate.method is None:
        return ()
    ranged = tuple(status for first in "45" if f"{first}XX" in documented for status in _RANGE[first])
    if ranged or any(status.isdigit() and _is_named(status, has_credential=True) for status in documented):
        return ranged
    missing = ("404",) if "{" in (candidate.path or "") else ()
    conflict = ("409",) if candidate.method in ("POST", "PUT", "PATCH") else ()
    return ("400", *missing, *conflict, "429")


def _name(status: str, text: str) -> str:
    """Derive a name from a short description, else from the status."""
    sentence = first_sentence(text, 120)
    parts = [word for word in words(sentence) if word not in _SILENT] if sentence.isascii() else []
    name = "_".join(parts)
    usable = 2 <= len(parts) <= _MOST_WORDS and len(name) <= _LONGEST and name[0].isalpha()
    usable = usable and "".join(parts) not in _GENERIC and not any(part.isdigit() for part in parts)
    if usable and name not in UPSTREAM_ERRORS and not _ANY_FAILURE.issuperset(parts):
        return name
    return _NAMES.get(status, f"refused_with_{status}")
