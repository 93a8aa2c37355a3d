"""Phrases without a verb: "Account creation" creates, "Details of an order" are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bespeak.text.language.cue_words import CLAUSES, DETERMINERS, PREPOSITIONS, READ_NOUNS
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.light_verb import DOING, WRAPPERS
from bespeak.text.language.meanings import meanings
from bespeak.text.language.verb_form import lemmas

READING: Final = "get"
"""Verb for phrases that name a result."""
_REACH: Final = 8


def nominal_verb(sentence: Sequence[str]) -> tuple[str, int] | None:
    """Return the verb for the last noun of the first noun phrase, and the place of that noun."""
    phrase = _phrase(sentence)
    if not phrase:
        return None
    last = phrase[-1]
    word = sentence[last]
    if word in WRAPPERS and word not in {"query", "message"}:
        return None
    if word in READ_NOUNS or (word.endswith("s") and lexicon().counts(word[:-1]).noun):
        return READING, last
    follower = sentence[last + 1] if last + 1 < len(sentence) else ""
    known = meanings()
    verb = known.verb_of(word)
    if verb and verb in known.hand and word.endswith(DOING) and (len(phrase) > 1 or follower == "of"):
        return verb, last
    if len(phrase) > 1:
        for lemma in lemmas(word):
            if lemma.form in {"base", "gerund"} and lemma.verb in known.hand:
                return lemma.verb, last
    return (READING, last) if follower == "by" else None


def _phrase(sentence: Sequence[str]) -> list[int]:
    """Return the places of the words up to the first preposition; empty if an article inside implies a verb."""
    phrase: list[int] = []
    for at, word in enumerate(sentence[:_REACH]):
        if word in PREPOSITIONS or word in CLAUSES or not word[0].isalnum():
            if phrase:
                break
        elif word not in DETERMINERS:
            phrase.append(at)
        elif phrase:
            return []
    return phrase
