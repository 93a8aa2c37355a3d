"""Phrasal verbs: to look up is to find, to call off is to cancel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bespeak.text.language.sentence import word_set

_MEANINGS: Final = {
    "look": {"up": "find", "for": "find", "at": "inspect", "into": "investigate", "through": "search"},
    "set": {"up": "create", "off": "trigger", "back": "reset", "aside": "reserve"},
    "sign": {"up": "register", "in": "login", "out": "logout", "off": "approve", "on": "login"},
    "log": {"in": "login", "out": "logout", "on": "login", "off": "logout"},
    "turn": {"on": "enable", "off": "disable", "down": "reject", "into": "convert", "over": "transfer"},
    "switch": {"on": "enable", "off": "disable", "over": "failover"},
    "shut": {"down": "shutdown", "off": "disable"},
    "take": {
        "out": "withdraw", "down": "takedown", "over": "claim", "back": "revoke", "off": "remove", "away": "remove",
    },
    "check": {"in": "checkin", "out": "checkout"},
    "roll": {"back": "rollback", "out": "rollout", "over": "renew"},
    "hand": {"back": "return", "over": "transfer", "off": "handoff", "out": "distribute", "in": "submit"},
    "fill": {"in": "fill", "out": "fill"},
    "break": {"down": "analyze", "up": "split", "into": "segment"},
    "work": {"out": "calculate"},
    "figure": {"out": "determine"},
    "find": {"out": "determine"},
    "pick": {"up": "collect", "out": "select"},
    "drop": {"off": "deliver"},
    "carry": {"out": "perform"},
    "send": {"out": "send", "back": "return"},
    "respond": {"with": "return"},
    "give": {"up": "relinquish", "out": "distribute"},
    "pay": {"back": "reimburse", "out": "disburse", "for": "purchase"},
    "put": {"back": "restore", "off": "postpone", "together": "assemble", "up": "post"},
    "call": {"off": "cancel", "back": "call", "for": "request", "out": "call", "up": "call"},
    "start": {"up": "start", "over": "restart"},
    "spin": {"up": "create", "down": "shutdown"},
    "tear": {"down": "destroy"},
    "clean": {"up": "cleanup"},
    "opt": {"in": "subscribe", "out": "unsubscribe"},
    "back": {"up": "backup", "out": "cancel"},
    "kick": {"off": "start", "out": "remove"},
    "bring": {"up": "start", "down": "shutdown"},
    "bid": {"on": "bid"},
    "go": {"through": "review"},
    "phase": {"out": "retire"},
    "wipe": {"out": "wipe"},
    "rule": {"out": "exclude"},
    "point": {"out": "identify"},
    "reach": {"out": "contact"},
    "get": {"rid": "remove", "back": "retrieve"},
    "add": {"up": "calculate"},
    "sum": {"up": "summarize"},
    "mark": {"down": "reduce"},
    "write": {"off": "waive", "down": "record"},
    "wake": {"up": "wake"},
    "power": {"on": "start", "off": "stop", "up": "start", "down": "stop"},
    "cut": {"off": "disconnect"},
    "free": {"up": "release"},
    "kill": {"off": "kill"},
    "end": {"up": "end"},
    "try": {"out": "test"},
    "follow": {"up": "contact"},
    "draw": {"up": "draft"},
    "pull": {"up": "retrieve", "out": "withdraw", "down": "download"},
    "settle": {"which": "determine", "whether": "determine", "what": "determine", "how": "determine"},
    "establish": {"that": "verify", "whether": "determine", "which": "determine", "how": "determine"},
    "see": {"if": "check", "whether": "check"},
    "make": {"sure": "ensure"},
    "narrow": {"down": "locate"},
}  # fmt: skip
_PARTED: Final = frozenset(
    {"turn", "switch", "shut", "power", "put", "call", "take", "bring", "break", "log", "sign", "roll"}
)
"""Verbs whose object may come before the particle: turns the device off."""
_REACH: Final = 6
_LAST: Final = frozenset({"on", "off", "down", "back", "away", "out", "up"})
_EARLIER: Final = word_set("previous original initial default first last earlier normal prior former primary state")
_ENDS: Final = frozenset({".", ",", "and", "or", "if", "when", "for", "from", "of"})
_STATE_REACH: Final = 12
_ON_OFF: Final = re.compile(r"\b(?:on (?:and|or) off|off (?:and|or) (?:back )?on)\b")
_SWITCHES: Final = frozenset({"turn", "switch", "power"})
_DEFAULTS: Final = frozenset({"default", "defaults", "factory"})


def two_word_verb(verb: str, sentence: Sequence[str], at: int) -> str | None:
    """Return the meaning of a verb with its particle, if the particle is present."""
    if verb == "return":
        return "restore" if _returns_to(sentence, at) else None
    if verb == "restore" and not _DEFAULTS.isdisjoint(sentence[at + 1 : at + _REACH]):
        return "reset"
    particles = _MEANINGS.get(verb)
    if particles is None:
        return None
    follower = sentence[at + 1] if at + 1 < len(sentence) else ""
    behind = sentence[at + 1 : at + 1 + _STATE_REACH]
    if verb in _SWITCHES and _ON_OFF.search(" ".join(behind)):
        return "toggle"
    if (verb, follower) == ("add", "up") and "to" in behind[1:2]:
        return None  # adds up to ten members
    if found := particles.get(follower):
        return found
    if verb in _PARTED:
        for place in range(at + 2, min(at + _REACH, len(sentence))):
            behind = sentence[place + 1] if place + 1 < len(sentence) else "."
            if verb == "take" and (sentence[place], behind) == ("out", "of"):
                return None  # it may be extracted, withdrawn or removed
            if sentence[place] == "into" or (sentence[place] in _LAST and behind in _ENDS):
                return particles.get(sentence[place])
    return None


def _returns_to(sentence: Sequence[str], at: int) -> bool:
    """Return True if something is returned to an earlier state, not to a caller."""
    for place in range(at + 2, min(at + _STATE_REACH, len(sentence))):
        if sentence[place] == "to" and sentence[place - 1] != "up":
            return not _EARLIER.isdisjoint(sentence[place + 1 : place + 4])
    return False
