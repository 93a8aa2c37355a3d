"""Impact of a call, guessed conservatively: no description says whether a change can be undone (AGTP-API 14.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.guess import UNSURE, Guess, Risk
from bespeak.documents.adoption.naming import singular, words
from bespeak.documents.adoption.read_evidence import acts, only_reads
from bespeak.documents.adoption.repetition import adds_record
from bespeak.documents.adoption.verb_choice import VerbChoice, is_reading
from bespeak.documents.adoption.verb_words import changes, changing_words
from bespeak.text.language.meanings import NOT_UNDOING
from bespeak.text.language.operation_class import operation_classes

_READ_CATEGORIES: Final = frozenset({"discovery", "retrieval", "analysis"})
_UNDONE_BY: Final = frozenset(
    {
        *("PAUSE", "RESUME", "ENABLE", "DISABLE", "ACTIVATE", "DEACTIVATE", "ARCHIVE", "UNARCHIVE", "LINK", "UNLINK"),
        *("ATTACH", "DETACH", "SUBSCRIBE", "UNSUBSCRIBE", "BIND", "UNBIND", "MOUNT", "UNMOUNT", "CORDON", "UNCORDON"),
        *("FOLLOW", "SUSPEND", "REINSTATE", "CONNECT", "DISCONNECT", "ASSIGN", "UNASSIGN", "PAIR", "UNPAIR"),
        *("BLOCK", "ALLOW"),
    }
)
"""Verbs that another verb of the catalog undoes."""
_OF_SESSIONS: Final = frozenset({"logout", "signout", "logoff"})
"""Words for an end that only the owner of a password can undo."""
_OVERWRITING: Final = frozenset(
    {
        *("UPDATE", "MODIFY", "REPLACE", "SET", "CHANGE", "EDIT", "REVISE", "ADJUST", "AMEND", "ALTER", "CONFIGURE"),
        *("RENAME", "MOVE", "PATCH", "UPSERT", "LOCK", "PIN", "TOGGLE", "TAG", "LABEL", "SWITCH", "HIDE", "MUTE"),
    }
)
"""Verbs and words that only replace values."""
_UNDOING: Final = ("un", "dis", "de")
"""Prefixes of words for taking back: doing it again restores what was."""
_LEAVING: Final = frozenset(
    {
        *("message", "mail", "email", "sms", "fax", "call", "notification", "invitation", "tweet", "dispatch"),
        *("payment", "charge", "payout", "refund", "transfer", "transaction", "purchase", "order", "donation"),
    }
)
"""Things that have left, or money that has moved, once they exist; deleting the record does not bring them back."""
_AGAINST: Final = {
    "informational": frozenset({"transaction", "modification", "creation"}),
    "reversible": frozenset({"discovery", "retrieval"}),
    "irreversible": _READ_CATEGORIES,
}
"""Capabilities that contradict an impact (AGIS 6.2)."""
_TRIED: Final = frozenset({"test", "try", "ping", "chat"})
"""Words that look like reading but may act: a test mail is sent, a test hook is called."""
_NO_CONFIDENCE: Final = "descriptions do not state a confidence"
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
"""Methods whose effect a repetition does not add to. A GET that acts after all keeps to nothing."""


@dataclass(frozen=True, slots=True)
class ImpactGuess:
    """Impact, capability and idempotency, with the guesses behind them."""

    impact: str
    capability: str
    is_idempotent: bool
    confidence: float
    """Confidence of the endpoint in its outcome."""
    guesses: tuple[Guess, ...]


class _Verdict(NamedTuple):
    """An impact with its reason, how sure it is, and what it may be instead."""

    impact: str
    why: str
    confidence: float
    otherwise: str


def guess_impact(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> ImpactGuess:
    """Guess the impact of a call, whether it may be repeated, and its capability."""
    verdict = _impact(candidate, choice, catalog) if candidate.method else _impact_without_method(candidate, choice)
    impact, why, sure, other = verdict
    doubtful = impact == "informational" and not candidate.claims_to_read
    grave = impact == "irreversible" or doubtful
    risk: Risk = "high" if grave else "medium" if impact == "reversible" else "low"
    adding = adds_record(candidate)
    repeatable = candidate.method in _IDEMPOTENT and not adding
    idempotent = impact == "informational" or repeatable or candidate.idempotent is True
    outcome = 0.9 if impact == "informational" else 0.8
    guesses = [
        Guess(at="/semantic/impact", text=f"impact {impact}", why=why, confidence=sure, otherwise=other, risk=risk),
        Guess(
            at="/semantic/is_idempotent",
            text=f"{'may' if idempotent else 'may not'} be repeated",
            why=adding or _repetition_reason(candidate, impact),
            confidence=0.8 if candidate.method not in ("POST", None) else 0.7,
            risk="medium" if idempotent and impact != "informational" else "low",
        ),
        Guess(at="/semantic/confidence", text=f"confidence {outcome}", why=_NO_CONFIDENCE, confidence=0.5),
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


def _repetition_reason(candidate: Candidate, impact: str) -> str:
    if impact == "informational" and (candidate.method is None or not candidate.claims_to_read):
        return "reading can be repeated"
    if candidate.method:
        return f"{candidate.method} repeats like that in HTTP"
    return "its hints say so" if candidate.idempotent else "nothing says that it can be repeated"


def _impact_without_method(candidate: Candidate, choice: VerbChoice) -> _Verdict:
    """Guess by words and hints. A hint can confirm the words but never overrule a word that changes something."""
    word, source = next(changing_words(candidate), ("", ""))
    if candidate.destructive is not True and not word and not changes(choice.verb) and choice.word not in _TRIED:
        if candidate.read_only:
            return _Verdict("informational", "its hints say that it only reads", 0.8, "")
        if candidate.read_only is None and _reads(choice):
            return _Verdict("informational", f"'{choice.word}' only reads", 0.6, "irreversible")
    if choice.verb in _UNDONE_BY and candidate.destructive is not True:
        return _Verdict("reversible", f"another call undoes {choice.verb}", 0.6, "irreversible")
    other = "informational" if candidate.read_only else "reversible"
    if candidate.destructive:
        return _Verdict("irreversible", "its hints say that it is destructive", 0.8, other)
    why = f"{source} says '{word}'" if word else "nothing says that it can be undone"
    return _Verdict("irreversible", why, 0.4 if candidate.read_only else 0.6, other)


def _reads(choice: VerbChoice) -> bool:
    """Return True if the word that chose the verb clearly means reading."""
    classes = operation_classes(choice.verb.lower())
    reads = classes is not None and classes.main in ("READ", "ANALYZE") and not changes(choice.word or choice.verb)
    return reads and bool(choice.word) and choice.word not in _TRIED and choice.confidence >= UNSURE


def _impact(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> _Verdict:
    method, verb, word = candidate.method, choice.verb, choice.word
    if candidate.claims_to_read:
        acting = acts(candidate)
        if acting:
            return _Verdict(
                "irreversible", f"its words say '{acting}', although {method} should only read", 0.4, "informational"
            )
        return _Verdict("informational", f"{method} changes nothing", 0.6 if choice.refused else 0.9, "")
    if method == "POST" and is_reading(verb, catalog) and only_reads(candidate, word):
        return _Verdict("informational", f"'{word}' only reads, although it is a {method}", 0.7, "irreversible")
    if verb in _UNDONE_BY and word not in _OF_SESSIONS:
        return _Verdict("reversible", f"another call undoes {verb}", 0.6, "irreversible")
    if word.startswith("un") and _takes_back(word):
        return _Verdict("reversible", f"doing it again undoes '{word}'", 0.6, "irreversible")
    if method == "DELETE":
        if _takes_back(word or choice.refused):
            return _Verdict("reversible", f"doing it again undoes '{word or choice.refused}'", 0.5, "irreversible")
        if candidate.is_undone:
            return _Verdict("reversible", "another call of the description restores it", 0.5, "irreversible")
        return _Verdict("irreversible", "deleted data is lost", 0.9, "reversible, if it can be restored")
    marked = (method, word) == ("PATCH", "mark")  # a POST that marks as lost may decide something for good
    if verb in _OVERWRITING and (not word or marked or word.upper() in _OVERWRITING) and not changes(choice.refused):
        if candidate.has_readable_state:
            return _Verdict("reversible", "the former state can be read and written back", 0.6, "irreversible")
        return _Verdict(
            "reversible", "the former values can be written back", 0.5, "irreversible, if nobody knows them"
        )
    if candidate.is_undone and _can_be_taken_back(candidate, verb, catalog):
        return _Verdict("reversible", "another call of the description deletes or corrects it", 0.6, "irreversible")
    return _Verdict("irreversible", f"nothing says that a {method} can be undone", 0.6, "reversible")


def _takes_back(word: str) -> bool:
    rests = (word.removeprefix(prefix) for prefix in _UNDOING if word.startswith(prefix))
    return any(operation_classes(rest) is not None for rest in rests) and word not in NOT_UNDOING


def _can_be_taken_back(candidate: Candidate, verb: str, catalog: Catalog) -> bool:
    """Return True unless something has been sent, paid or destroyed."""
    classes = operation_classes(verb.lower())
    if classes is None or classes.main in ("SEND", "DELETE") or "transaction" in catalog.verbs[verb].categories[:1]:
        return False
    literals = [words(part) for part in (candidate.path or "").split("/") if part and "{" not in part]
    return not literals or singular(literals[-1][-1] if literals[-1] else "") not in _LEAVING
