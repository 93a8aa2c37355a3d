"""Evidence that a call by POST changes nothing. Without it every POST counts as a change."""

from __future__ import annotations

from typing import Final

from bespeak.documents.adoption.candidate import READING, Candidate
from bespeak.documents.adoption.naming import words
from bespeak.documents.adoption.verb_words import SURE, base, changes, changing_words, name_verb, path_verb

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


def acts(candidate: Candidate) -> str:
    """Return the verb by which a call that should only read does more: `cancel` in GET /orders/{id}/cancel."""
    if candidate.method not in READING:
        return ""
    found = [one for one in (name_verb(candidate), path_verb(candidate)) if one is not None and one.trust >= SURE]
    acting = [one.word for one in found if changes(one.word) and one.word not in _PRODUCING]
    return acting[0] if acting and found[0].word == acting[0] else ""
