"""Words that may be verbs of another language (AGIS 13): BUCHEN and RESERVAR, but not CANCLE, BOOKINGS or MTCH."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.verb_form import split_nouns

_VOWELS: Final = frozenset("aeiouy")
_SHORTEST: Final = 3
INFINITIVES: Final = ("ar", "er", "ir", "are", "ere", "ire", "en", "eren", "ieren", "ern", "eln", "re", "a")
"""Endings of infinitives, among others of Romance and Germanic languages."""
_ENGLISH: Final = (
    *("able", "ible", "ally", "ely", "kly", "ness", "ment", "ship", "tion", "sion", "ance", "ence", "ology", "ity"),
    *("ful", "less", "ous", "ing", "ings", "ers", "ors"),
)
"""Endings of English words that are not base forms of verbs."""


def may_be_foreign(word: str, near: Sequence[str] = ()) -> bool:
    """Return True if a word that English does not know can be a verb of another language.

    `near` are known verbs with a similar spelling: the word may as well be a slip for one of them.
    """
    word = word.lower()
    if len(word) < _SHORTEST or _VOWELS.isdisjoint(word) or not word.isascii() or not word.isalpha():
        return False
    nouns = split_nouns(word, lexicon())
    # Two nouns are in a word by chance where it ends like an infinitive: CONSUL and TAR.
    if word.endswith(_ENGLISH) or (nouns and ("-" not in nouns or not word.endswith(INFINITIVES[:-1]))):
        return False
    return not any(_is_slip(word, verb.lower()) for verb in near)


def _is_slip(word: str, verb: str) -> bool:
    """Return True if a word is rather a misspelling of a verb, or the verb and something else in one word."""
    if word.startswith(verb):
        return word[len(verb) :] not in INFINITIVES and not (verb[-1:] == "e" and word[len(verb) - 1 :] in INFINITIVES)
    if len(word) == len(verb):
        wrong = [at for at, (one, other) in enumerate(zip(word, verb, strict=True)) if one != other]
        if len(wrong) == 2 and (word[wrong[0]], word[wrong[1]]) == (verb[wrong[1]], verb[wrong[0]]):
            return True
        return len(wrong) == 1 and not word.endswith(INFINITIVES)
    longer, shorter = (word, verb) if len(word) > len(verb) else (verb, word)
    one_more = any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))
    return one_more and not word.endswith(INFINITIVES)
