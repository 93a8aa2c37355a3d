"""What a call leaves behind, guessed on the safe side: HTTP does not say whether something can be undone (14.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.openapi.description import Operation
from bespeak.documents.openapi.guess import Guess, Risk
from bespeak.documents.openapi.verb_choice import READING, VerbChoice, changes
from bespeak.text.language.operation_class import operation_classes

_READ_CATEGORIES: Final = frozenset({"discovery", "retrieval", "analysis"})
_UNDONE_BY: Final = frozenset(
    {
        *("PAUSE", "RESUME", "ENABLE", "DISABLE", "ACTIVATE", "DEACTIVATE", "ARCHIVE", "UNARCHIVE", "LINK", "UNLINK"),
        *("ATTACH", "DETACH", "SUBSCRIBE", "UNSUBSCRIBE", "BIND", "UNBIND", "MOUNT", "UNMOUNT", "CORDON", "UNCORDON"),
        *("FOLLOW", "SUSPEND", "REINSTATE", "CONNECT", "DISCONNECT", "ASSIGN", "UNASSIGN", "PAIR", "UNPAIR"),
    }
)
"""Verbs that another verb of the catalog takes back."""
_OVERWRITING: Final = frozenset(
    {
        "UPDATE",
        "MODIFY",
        "REPLACE",
        "SET",
        "CHANGE",
        "EDIT",
        "REVISE",
        "ADJUST",
        "AMEND",
        "ALTER",
        "CONFIGURE",
        "RENAME",
    }
)
"""Verbs that put values in the place of others, and nothing more."""
_AGAINST: Final = {
    "informational": frozenset({"transaction", "modification", "creation"}),
    "reversible": frozenset({"discovery", "retrieval"}),
    "irreversible": _READ_CATEGORIES,
}
"""Capabilities that contradict an impact (AGIS 6.2)."""
_TRIED: Final = frozenset({"test", "try", "ping", "chat"})
"""Words that look like reading and may do the thing: a test mail is sent, a test hook is called."""
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class ImpactGuess:
    """Impact, capability and idempotency with what they were concluded from."""

    impact: str
    capability: str
    is_idempotent: bool
    confidence: float
    """How sure the endpoint says it is of its outcome."""
    guesses: tuple[Guess, ...]


def guess_impact(operation: Operation, choice: VerbChoice, catalog: Catalog, *, can_be_read: bool) -> ImpactGuess:
    """The impact of an operation. `can_be_read` says whether what it overwrites could have been read before."""
    impact, why, sure, other = _impact(operation, choice, can_be_read=can_be_read)
    doubtful = impact == "informational" and operation.method not in READING
    grave = impact == "irreversible" or doubtful
    risk: Risk = "high" if grave else "medium" if impact == "reversible" else "low"
    idempotent = impact == "informational" or operation.method in _IDEMPOTENT
    outcome = 0.9 if impact == "informational" else 0.8
    guesses = [
        Guess(at="/semantic/impact", text=f"impact {impact}", why=why, confidence=sure, otherwise=other, risk=risk),
        Guess(
            at="/semantic/is_idempotent",
            text=f"{'may' if idempotent else 'may not'} be repeated",
            why=f"{operation.method} by HTTP" if not doubtful else "what only reads can be repeated",
            confidence=0.8 if operation.method != "POST" else 0.7,
            risk="medium" if idempotent and impact != "informational" else "low",
        ),
        Guess(
            at="/semantic/confidence",
            text=f"confidence {outcome}",
            why="no description says how sure an outcome is",
            confidence=0.5,
        ),
    ]
    verb = catalog.verbs[choice.verb]
    capability = next((name for name in verb.categories if name not in _AGAINST[impact]), "")
    if not capability:
        capability = "retrieval" if impact == "informational" else "transaction"
        why = f"{choice.verb} is {verb.categories[0]} in the catalog, which contradicts impact {impact}"
        guesses.append(
            Guess(at="/semantic/capability", text=f"capability {capability}", why=why, confidence=0.5, risk="medium")
        )
    return ImpactGuess(impact, capability, idempotent, outcome, tuple(guesses))


def _impact(operation: Operation, choice: VerbChoice, *, can_be_read: bool) -> tuple[str, str, float, str]:
    method, verb = operation.method, choice.verb
    if method in READING:
        if choice.word and changes(verb):
            return "irreversible", f"its words say {verb}, whatever {method} promises", 0.4, "informational"
        return "informational", f"{method} changes nothing", 0.9, ""
    if method == "DELETE":
        return "irreversible", "what is deleted is gone", 0.9, "reversible, if it can be restored"
    if method in ("PUT", "PATCH"):
        if can_be_read and (verb in _OVERWRITING or verb in _UNDONE_BY):
            return "reversible", "the former state can be read and written back", 0.6, "irreversible"
        why = "the former state cannot be read, so nobody can write it back"
        return "irreversible", why if not can_be_read else f"nothing takes {verb} back", 0.6, "reversible"
    classes = operation_classes(verb.lower())
    reads = classes is not None and classes.main in ("READ", "ANALYZE") and not changes(choice.word or verb)
    reads = reads and choice.word not in _TRIED
    if reads and choice.word and choice.confidence >= 0.7:
        return "informational", f"'{choice.word}' only reads, although it is a {method}", 0.7, "irreversible"
    if verb in _UNDONE_BY:
        return "reversible", f"another call takes {verb} back", 0.6, "irreversible"
    return "irreversible", f"nothing says that a {method} can be undone", 0.6, "reversible"
