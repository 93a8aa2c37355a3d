"""Texts of tools: the sentence that says what a tool is for, and the sentences that say what it does besides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from bespeak.documents.adoption.plain_text import first_sentence
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.verb_form import lemmas

_EFFECTS: Final = frozenset(
    {
        *("save", "write", "store", "delete", "remove", "erase", "drop", "create", "insert", "append", "update"),
        *("modify", "overwrite", "replace", "rename", "move", "send", "post", "publish", "upload", "push", "submit"),
        *("charge", "pay", "purchase", "order", "book", "transfer", "execute", "trigger", "start", "stop", "install"),
        *("commit", "merge", "deploy", "restart", "revoke", "cancel", "close", "archive", "download", "consume"),
    }
)
"""Verbs by which a later sentence says that a tool does more than answer."""
_SEEN: Final = 4_000
"""Characters of a description that are searched."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_MARK: Final = re.compile(r"^(?:[\W_]+|\d{1,2}[.)]\s+)+")
"""What stands before a line: a bullet, a number, an emoji, the sign of a heading."""
_PURPOSE: Final = re.compile(r"^\W*(?:purpose|what it does|overview|summary)\b\W*$", re.IGNORECASE | re.MULTILINE)
"""A heading before the sentence that matters."""
_LABEL: Final = re.compile(r"^[A-Z][\w ]{0,24}(?::\s+|\s+\|\s+)(?=\S)")
"""A label before a sentence: `Purpose: `, `Notion | `."""
_FEW: Final = 3
"""Words from which a line counts as a sentence."""
_MOST: Final = 40


def goal(description: str) -> str:
    """Return the first sentence that says what a tool does, without headings, bullets and labels before it."""
    first = ""
    purpose = _PURPOSE.search(description[:_SEEN])
    for line in _lines(description[purpose.end() :] if purpose else description):
        sentence = first_sentence(line)
        if len(sentence.split()) < _FEW and not head_verbs(sentence):
            continue
        if head_verbs(sentence):
            return sentence
        first = first or sentence
    return first


def effects(description: str) -> Iterator[str]:
    """Yield what later sentences say that a tool does: `Saves the file`. Commands are addressed to the caller."""
    for line in list(_lines(description))[1:]:
        word = line.partition(" ")[0]
        forms = [lemma for lemma in lemmas(word.lower()) if lemma.form == "third"]
        if forms and forms[0].verb in _EFFECTS:
            yield " ".join(line.split()[:3]).rstrip(".,;:")


def _lines(description: str) -> Iterator[str]:
    for count, line in enumerate(_SENTENCE.split(description[:_SEEN])):
        bare = _LABEL.sub("", _MARK.sub("", line.strip())).strip()
        if count > _MOST:
            return
        if bare and not bare.endswith(":"):
            yield bare
