"""Light verbs: in "makes a reservation" the object names the action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bespeak.text.language.cue_words import READ_NOUNS
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.meanings import meanings
from bespeak.text.language.sentence import word_set
from bespeak.text.language.verb_form import lemmas

EMPTY: Final = word_set("make perform do conduct execute carry take run undertake effect handle")
"""Verbs that say nothing about the operation without their object."""
ASKING: Final = word_set(
    "initiate request submit start trigger launch begin place issue file process complete raise invoke post send ask"
)
"""Verbs whose object says more: "submits a cancellation request"."""
DEFERRING: Final = frozenset({"schedule", "queue", "enqueue", "begin", "stage"})
"""Verbs whose object says more only if it is a noun of action: "schedules the removal of", but not "a visit"."""
LIGHT: Final = EMPTY | ASKING | DEFERRING
OBTAINING: Final = frozenset({"request", "provide", "give"})
"""Verbs that read when one of _INFORMATION is their object."""

_INFORMATION: Final = word_set(
    "information info details detail data status list overview summary statistics stats history access-logs metadata "
    "insight insights results result report"
)
DOING: Final = ("tion", "sion", "ment", "al", "ance", "ence", "ure", "sis", "very", "tions", "ments", "sions", "als")
"""Endings of nouns that name an action: cancellation, payment; not those of things: entry, item."""
WRAPPERS: Final = word_set(
    "request requests order process operation action procedure command job task call flow transaction workflow "
    "instruction query message event activity batch operations"
)
"""Nouns that follow the noun that matters: a cancellation request, a transfer order."""
_STOPS: Final = word_set(
    "of for to from with on in by at into onto about within that which and or , . ( : ; using via if when where "
    "against over between across without during until as per through based off away back up down together apart"
)
_SKIPPED: Final = word_set(
    "the a an this that these all any each every some its their your new existing specific single given current "
    "out full partial quick real-time simple"
)
REACH: Final = 8


def action_noun(noun: str) -> str | None:
    """Return the verb of a noun that names an action by its ending: deletion, removal."""
    found = meanings().verb_of(noun)
    return found if found and noun.endswith(DOING) else None


def meant_verb(verb: str, sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb that the object of a light verb names, and the place of that noun."""
    if verb not in LIGHT and verb not in OBTAINING:
        return None
    phrase = object_places(sentence, at + 1)
    if not phrase:
        return None
    given = "to" in sentence[phrase[-1] + 1 : phrase[-1] + 2]  # provides details to somebody
    if verb in OBTAINING and sentence[at + 1] != "back" and sentence[phrase[-1]] in _INFORMATION and not given:
        return "get", phrase[-1]
    if verb not in LIGHT or (verb == "take" and "from" in sentence[at : at + REACH]):
        return None
    last = phrase[-1]
    if sentence[last] == "query":
        return "query", last
    if verb in DEFERRING:
        return (found, last) if (found := action_noun(sentence[last])) else None
    if sentence[last] in WRAPPERS:
        if len(phrase) > 1 and (found := named_verb(sentence[phrase[-2]])):
            return found, phrase[-2]
        if verb in ASKING and verb != "place":
            return None
    found = named_verb(sentence[last])
    return (found, last) if found else None


def object_places(sentence: Sequence[str], start: int) -> list[int]:
    """Return the places of the object's words, without articles; "a request to" counts up to "to"."""
    places: list[int] = []
    for place in range(start, min(start + REACH, len(sentence))):
        word = sentence[place]
        if word in _STOPS:
            if places:
                break
            continue
        if word not in _SKIPPED:
            places.append(place)
    return places


def named_verb(noun: str) -> str | None:
    """Return the verb of a noun: by derivation, by the same spelling, or by its -ing form."""
    if noun in READ_NOUNS:
        return None
    found = meanings().verb_of(noun)
    if found and found in meanings().hand and noun.endswith(DOING):
        return found
    for lemma in lemmas(noun):
        if lemma.form in {"base", "third", "gerund"} and lemma.verb in meanings().hand:
            shares = lexicon().share(lemma.verb)
            if lemma.form == "gerund" or shares[0] >= 0.1 or not any(shares):
                return lemma.verb
    return None
