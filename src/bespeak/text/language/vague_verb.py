"""Vague verbs, whose meaning depends on a following word: to bring back, to put together, to give to somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bespeak.text.language.cue_words import CLAUSES, PREPOSITIONS
from bespeak.text.language.lexicon import lexicon

_READINGS: Final = {
    "bring": {
        "back": "retrieve restore", "together": "combine collect", "date": "update", "end": "close stop",
        "line": "standardize", "form": "normalize", "being": "create", "service": "activate", "circulation": "issue",
        "into": "load import", "in": "load import", "to": "deliver",
    },
    "take": {
        "service": "deactivate decommission", "circulation": "retire", "apart": "deconstruct",
        "account": "withdraw debit", "registry": "deregister", "out": "extract remove", "off": "remove",
        "in": "receive collect", "note": "observe record", "part": "join", "from": "withdraw extract", "for": "borrow",
    },
    "put": {
        "together": "combine assemble", "service": "activate", "sequence": "sort", "place": "replace install",
        "signature": "sign", "up": "propose offer", "words": "formulate", "language": "translate", "into": "insert",
        "in": "insert", "onto": "deploy", "on": "add",
    },
    "give": {
        "back": "return restore", "another": "change", "other": "change", "name": "name", "up": "release",
        "permission": "grant", "access": "grant", "right": "grant", "consent": "approve", "authority": "authorize",
        "number": "count", "leave": "permit", "facts": "inform", "to": "grant assign send",
    },
    "keep": {
        "eye": "watch", "observation": "monitor", "policy": "govern", "up": "follow", "copy": "store",
        "state": "snapshot", "from": "block", "away": "block", "identical": "sync", "track": "track",
    },
    "hold": {"until": "wait", "for": "reserve", "later": "suspend"},
    "pass": {"on": "forward", "over": "transfer", "along": "forward", "through": "forward", "to": "transfer"},
    "offer": {"for": "bid", "counsel": "advise", "advice": "advise"},
    "go": {"on": "continue", "back": "trace", "ahead": "continue"},
    "carry": {"between": "relay", "to": "deliver", "over": "transfer"},
    "express": {"as": "quantify", "in": "convert"},
    "return": {"money": "refund reimburse", "funds": "refund reimburse", "newly": "create"},
    "turn": {"in": "redeem", "to": "switch"},
    "break": {"off": "abort"},
    "leave": {"with": "deposit"},
    "identify": {"as": "designate register"},
    "let": {"use": "permit", "pass": "allow"},
}  # fmt: skip
"""Meanings of a verb by a following word; the first matching entry counts."""
_KNOWN: Final = frozenset({"known", "public", "visible", "available"})
_ARTICLES: Final = frozenset({"a", "an", "one", "new", "something"})
_REACH: Final = 9


def readings(verb: str, sentence: Sequence[str], at: int) -> tuple[str, ...]:
    """Return the possible meanings of a vague verb here; empty if no following word decides."""
    behind = sentence[at + 1 : at + 1 + _REACH]
    end = next((place for place, word in enumerate(behind) if word in CLAUSES and word != "until"), len(behind))
    behind = behind[:end]
    if verb == "make":
        return _made(behind)
    cues = _READINGS.get(verb)
    if cues is None:
        return ()
    present = set(behind)
    return next((tuple(verbs.split()) for cue, verbs in cues.items() if cue in present), ())


def _made(behind: Sequence[str]) -> tuple[str, ...]:
    """Return the meaning of "make": to make known is to announce, to make larger is to change, to make a thing is to
    create.
    """
    if not _KNOWN.isdisjoint(behind):
        return "publish", "announce", "disclose", "expose", "enable"
    end = next((place for place, word in enumerate(behind) if word in PREPOSITIONS and place), len(behind))
    if end > 1 and _is_quality(behind[end - 1]):
        return ("change",)
    return ("create",) if behind and behind[0] in _ARTICLES else ()


def _is_quality(word: str) -> bool:
    shares = lexicon().share(word)
    return word in lexicon().others or shares[2] > sum(shares[:2])
