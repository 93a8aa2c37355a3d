"""Texts of tools: the sentence that says what a tool is for."""

from __future__ import annotations

import re
from typing import Final

from bespeak.documents.adoption.deed_text import sentences
from bespeak.documents.adoption.plain_text import first_sentence
from bespeak.text.language.head_verb import head_verbs

_SEEN: Final = 4_000
"""Characters of a description that are searched."""
_PURPOSE: Final = re.compile(r"^\W*(?:purpose|what it does|overview|summary)\b\W*$", re.IGNORECASE | re.MULTILINE)
"""A heading before the sentence that matters."""
_FEW: Final = 3
"""Words from which a line counts as a sentence."""


def goal(description: str) -> str:
    """Return the first sentence that says what a tool does, without headings, bullets and labels before it."""
    first = ""
    purpose = _PURPOSE.search(description[:_SEEN])
    for line in sentences(description[purpose.end() :] if purpose else description):
        sentence = first_sentence(line)
        if len(sentence.split()) < _FEW and not head_verbs(sentence):
            continue
        if head_verbs(sentence):
            return sentence
        first = first or sentence
    return first
