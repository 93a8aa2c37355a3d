"""Frames: in "Starts a job that deletes files" and "Allows files to be deleted" the inner verb says what happens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from bespeak.text.language.cue_words import CLAUSES, DETERMINERS, MODALS, PREPOSITIONS
from bespeak.text.language.light_verb import WRAPPERS, action_noun, object_places
from bespeak.text.language.sentence import word_set
from bespeak.text.language.verb_form import FormName, lemmas

LAUNCHING: Final = word_set(
    "start begin initiate launch trigger schedule queue enqueue submit request run execute create add open file place "
    "make issue send invoke perform"
)
"""Verbs that set something going; what it does is said behind a noun such as "job"."""
TAKING: Final = frozenset({"accept", "take", "receive"})
"""Verbs for the input of an operation, beside the verb for what is done with it: "Accepts a text and returns"."""
_INPUT: Final = word_set(
    "list lists query command text texts image file files parameter parameters body input inputs id ids name names "
    "json array string filters filter data document url code set value values object"
)

_STARTING: Final = frozenset({"start", "begin", "continue", "resume", "initiate", "commence"})
_PLANNING: Final = word_set("schedule queue enqueue stage submit request")
_JOBS: Final = word_set("job jobs run runs task tasks execution workflow workflows process processes build crawl")
_WRAPPERS: Final = WRAPPERS | _JOBS
_FORMS: Final[dict[str, FormName]] = {"that": "third", "which": "third", "to": "base", "for": "gerund", "of": "gerund"}
"""Form of the inner verb by the word before it."""
_REACH: Final = 8


def inner_verb(verb: str, sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb behind the object of a launching verb and its place: a job that deletes, a request to delete."""
    if verb in _STARTING and at + 1 < len(sentence) and (found := verb_in_form(sentence[at + 1], "gerund")):
        return found, at + 1
    if verb not in LAUNCHING:
        return None
    for place in range(at + 1, min(at + _REACH, len(sentence) - 2)):
        word = sentence[place]
        if word in _WRAPPERS and (form := _FORMS.get(sentence[place + 1])):
            after = _behind_adverbs(sentence, place + 2)
            if sentence[after] == "be":
                return passive_verb(sentence, after)
            if found := verb_in_form(sentence[after], form):
                return found, after
            return _noun_behind(sentence, after) if form == "gerund" else None
        if verb in _PLANNING and (word, sentence[place + 1]) == ("to", "be"):
            return passive_verb(sentence, place + 1)
        if word in PREPOSITIONS or word in CLAUSES:
            return None
    return None


def takes_input(verb: str, sentence: Sequence[str], at: int) -> bool:
    """Return True if a verb says only what the operation is given: "Accepts a list of filters"."""
    phrase = object_places(sentence, at + 1) if verb in TAKING else []
    return bool(phrase) and sentence[phrase[-1]] in _INPUT


def is_launch(verb: str, sentence: Sequence[str], at: int) -> bool:
    """Return True if a verb sets a job going: "Submits a training job" starts one."""
    phrase = object_places(sentence, at + 1) if verb in LAUNCHING else []
    return bool(phrase) and sentence[phrase[-1]] in _JOBS


def passive_verb(sentence: Sequence[str], be: int) -> tuple[str, int] | None:
    """Return the participle behind "be" and its place: "allows a file to be deleted"."""
    after = _behind_adverbs(sentence, be + 1)
    found = next(
        (lemma for lemma in lemmas(sentence[after].rpartition("-")[2]) if lemma.form in {"past", "participle"}), None
    )
    return (found.verb, after) if found else None


def behind_condition(sentence: Sequence[str]) -> int | None:
    """Return the place behind the comma of a leading clause or phrase: "If it exists, removes", "For a given id, …"."""
    if not sentence or (sentence[0] not in CLAUSES and sentence[0] not in _LEADING_PHRASES):
        return None
    return next(
        (at + 1 for at, (word, after) in enumerate(pairwise(sentence)) if word == "," and after not in _AND), None
    )


_AND: Final = frozenset({"and", "or", "but"})
"""Words by which a clause goes on behind a comma."""
_LEADING_PHRASES: Final = (PREPOSITIONS | {"given", "upon", "depending"}) - {"to", "and", "or", "using"}


def verb_in_form(word: str, form: FormName) -> str | None:
    """Return the verb of which a word is this form."""
    return next((lemma.verb for lemma in lemmas(word) if lemma.form == form), None)


def _behind_adverbs(sentence: Sequence[str], at: int) -> int:
    last = len(sentence) - 1
    while at < last and (sentence[at].endswith("ly") or sentence[at] in MODALS):
        at += 1
    return min(at, last)


def _noun_behind(sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb of a noun of action: "a request for the deletion of a file"."""
    while at < len(sentence) - 1 and sentence[at] in DETERMINERS:
        at += 1
    found = action_noun(sentence[at])
    return (found, at) if found else None
