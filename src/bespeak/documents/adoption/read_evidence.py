"""Evidence that a call by POST changes nothing. Without it every POST counts as a change."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from bespeak.documents.adoption.candidate import READING, Candidate
from bespeak.documents.adoption.deed_text import deeds
from bespeak.documents.adoption.field_signs import CHOOSING
from bespeak.documents.adoption.naming import singular, words
from bespeak.documents.adoption.verb_words import (
    SPOKEN,
    SURE,
    base,
    changes,
    changing_words,
    is_plain,
    is_verbal,
    name_verb,
    path_verb,
    said_words,
)

_ON_A_COMMAND: Final = frozenset(
    {
        *("search", "query", "list", "find", "count", "validate", "preview", "estimate", "calculate", "compare"),
        *("simulate", "dryrun", "explain", "suggest", "autocomplete", "exists"),
    }
)
"""Words that mean reading even as a command on one thing, and in prose: /orders/{id}/preview."""
_FETCHING: Final = frozenset({"get", "fetch", "retrieve"})
_ISSUED: Final = frozenset({"token", "session", "credential", "credentials", "secret", "otp", "nonce"})
"""Things that are made when somebody gets them: POST /oauth/token with `getToken`."""
_IN_A_NAME: Final = _ON_A_COMMAND | _FETCHING | {"lookup", "describe", "check", "is", "has", "does", "can"}
"""Words that mean reading as the verb of a name. As a command they may act: /repos/{id}/fetch, /todos/{id}/check."""
_MADE: Final = frozenset({"201", "202", "204"})
"""Statuses of an answer to something that was created, begun or done (RFC 9110 15.3)."""
_LAUNCHING: Final = frozenset(
    {"request", "trigger", "start", "initiate", "launch", "schedule", "submit", "begin", "force"}
)
"""First words of a sentence about work that is begun: `Trigger the verification of an account`."""
_PRODUCING: Final = frozenset(
    {"generate", "render", "build", "produce", "compose", "compile", "export", "print", "draw", "convert", "format"}
)
"""Verbs for making the answer itself: a GET that renders a page changes nothing."""
_MADE_FOR_GOOD: Final = _ISSUED | {"key", "keys", "apikey", "password", "passwords", "certificate", "pin", "keypair"}
"""Things that stay valid when they are made: GET /key/generate."""
_STATING: Final = frozenset(
    {"contain", "remain", "represent", "include", "provide", "consist", "belong", "expand", "describe", "confirm"}
)
"""Verbs about what there is."""
_CHOSEN: Final = frozenset({*((word,) for word in CHOOSING), ("action", "type"), ("action", "name")})
"""Words of a path parameter that says what is done."""


def only_reads(candidate: Candidate, word: str) -> bool:
    """Return True if a word in the place of the verb means reading, and nothing speaks against it."""
    named = name_verb(candidate)
    if word not in (_IN_A_NAME if named is not None and named.word == word else _ON_A_COMMAND):
        return False
    if word in _FETCHING and not _ISSUED.isdisjoint(words(f"{candidate.name} {candidate.path}")):
        return False
    begun = (text.partition(" ")[0].lower() for text in (candidate.summary, candidate.description))
    if not _LAUNCHING.isdisjoint(base(word) for word in begun):
        return False
    return candidate.successes.isdisjoint(_MADE) and not candidate.starts_job and not any(changing_words(candidate))


def contradicts(candidate: Candidate, word: str) -> bool:
    """Return True if a word says that a call changes something, although its method should only read.

    A word that is mostly a noun does not, unless it stands where only commands stand: `train` in `Next Trains`.
    """
    if not changes(word) or not (is_plain(word) or (word in SPOKEN and is_verbal(word))) or word in _STATING:
        return False
    return word not in _PRODUCING or not _MADE_FOR_GOOD.isdisjoint(_about(candidate))


def acts(candidate: Candidate) -> str:
    """Return the verb by which a call that should only read does more: `cancel` in GET /orders/{id}/cancel."""
    if candidate.method not in READING:
        return ""
    found = [one for one in (name_verb(candidate), path_verb(candidate)) if one is not None and one.trust >= SURE]
    acting = [one.word for one in found if changes(one.word) and _is_deed(candidate, one.word)]
    if acting and found[0].word == acting[0]:
        return acting[0]
    if _chooses_action(candidate.path or ""):
        return "control"
    for said in said_words(candidate):
        if contradicts(candidate, said.word):
            return said.word
        if said.trust >= SURE and not changes(said.word):
            break
    texts = (candidate.summary, candidate.description)
    told = (deed.verb for text in texts for deed in deeds(text, broad=False))
    return next((verb for verb in told if _is_deed(candidate, verb)), "")


def _chooses_action(path: str) -> bool:
    """Return True if a parameter of a path says what is done: /pods/{id}/{action}, but not /actions/{action}."""
    segments = path.split("/")
    return any(
        segment[:1] == "{" and words(segment[1:-1])[:2] in _CHOSEN and singular(before) != words(segment[1:-1])[0]
        for before, segment in pairwise(segments)
    )


def _is_deed(candidate: Candidate, verb: str) -> bool:
    return verb not in _PRODUCING or not _MADE_FOR_GOOD.isdisjoint(_about(candidate))


def _about(candidate: Candidate) -> set[str]:
    return set(words(f"{candidate.name} {candidate.path} {candidate.summary[:200]}"))
