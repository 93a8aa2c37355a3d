"""Evidence that a repeated call adds something, although its HTTP method is idempotent (RFC 9110 9.2.2)."""

from __future__ import annotations

import re
from typing import Final

from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.naming import singular, words

_RECORDS: Final = frozenset(
    {"version", "revision", "history", "event", "comment", "snapshot", "log", "entry", "activity", "annotation"}
)
"""Things that are added to a history and not replaced."""
_ADDING: Final = re.compile(
    r"\b(?:add|append|creat|record|publish|post|sav|upload|start)(?:e?s|ing|e)? "
    r"(?:(?:a|an|another|one|more|new|next|further) )*(?:\w+ )?"
    rf"(?P<record>{'|'.join(sorted(_RECORDS))})s?\b"
)


def adds_record(candidate: Candidate) -> str:
    """Return why each PUT adds a record, such as another version; empty if nothing says so."""
    if candidate.method != "PUT":
        return ""
    if candidate.successes == {"201"}:
        return "each PUT is answered with 201, so it creates something"
    last = (candidate.path or "").rstrip("/").rpartition("/")[2]
    named = words(last) if "{" not in last else []
    # `/comments/{id}` names one comment, which a PUT replaces; `/comments` gets another one.
    if named and singular(named[-1]) in _RECORDS:
        return f"a PUT to '{last}' may add to a history"
    text = " ".join(words(f"{candidate.summary[:500]} {candidate.description[:500]}"))
    found = _ADDING.search(text.lower())
    return f"its text says that it adds: '{found.group()}'" if found else ""
