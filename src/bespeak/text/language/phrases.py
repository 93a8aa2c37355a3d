"""Phrases whose action another word names: light and vague verbs, frames, nouns of action, and hints.

Hints support a method, but never contradict it: to create a payment is to pay, or to describe what was paid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import listed, table, word_set
from bespeak.text.language.verb_form import FormName, lemmas

DETERMINERS: Final = listed("determiners")
MODALS: Final = word_set("will can may must should shall could would might does do")
BEING: Final = word_set("is are was were be been being gets get")
SUBJECTS: Final = listed("subjects")
LEADING: Final = listed("leading")
JUMPS: Final = listed("jumps")
PURPOSES: Final = listed("purposes")  # verbs of means; the purpose follows: sends an image to analyze it
ASKING_THAT: Final = word_set("allow enable let permit request ask cause require demand arrange")
"""Verbs whose object may be said in the passive: allows a file to be deleted, requests that a job be cancelled."""
THROUGH_A_NOUN: Final = word_set("make issue provide give offer start expose support")
MEANS: Final = listed("means")
CLAUSES: Final = word_set("that which who whose where when if because so while unless until after before once")
PREPOSITIONS: Final = listed("prepositions")
BARE_NOUNS: Final = listed("bare-nouns")  # words behind a noun at the start: "comment by id"
VERBS_FIRST: Final = listed("verbs-first")  # verbs that begin a summary far more often than their nouns
READ_NOUNS: Final = listed("read-nouns")  # nouns that a phrase without a verb returns: "Details of an order"
PURPOSE: Final = word_set("purpose goal aim intent intention point idea")
"""Nouns whose sentence names the action after "is to": "The purpose of this service is to retrieve …"."""
USED: Final = word_set("used designed intended able meant responsible useful called")  # before "to" and "for": used to
EMPTY: Final = word_set("make perform do conduct execute carry take run undertake effect handle")
"""Verbs that say nothing about the operation without their object."""
ASKING: Final = listed("asking")  # verbs whose object says more: "submits a cancellation request"
DEFERRING: Final = frozenset({"schedule", "queue", "enqueue", "begin", "stage"})
"""Verbs whose object says more only if it is a noun of action: "schedules the removal of", but not "a visit"."""
LIGHT: Final = EMPTY | ASKING | DEFERRING
OBTAINING: Final = frozenset({"request", "provide", "give"})  # verbs that read when one of _INFORMATION is their object
_INFORMATION: Final = listed("information")
DOING: Final = ("tion", "sion", "ment", "al", "ance", "ence", "ure", "sis", "very", "tions", "ments", "sions", "als")
"""Endings of nouns that name an action: cancellation, payment; not those of things: entry, item."""
WRAPPERS: Final = listed("wrappers")  # nouns after the one that matters: a cancellation request
_STOPS: Final = listed("stops")
_SKIPPED: Final = listed("skipped")
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


_READINGS: Final = table("readings")  # meanings of a verb by a following word; the first matching entry counts
_KNOWN: Final = frozenset({"known", "public", "visible", "available"})
_ARTICLES: Final = frozenset({"a", "an", "one", "new", "something"})
_REACH: Final = 9


def readings(verb: str, sentence: Sequence[str], at: int) -> tuple[str, ...]:
    """Return the possible meanings of a vague verb here; empty if no following word decides."""
    behind = sentence[at + 1 : at + 1 + _REACH]
    end = next((place for place, word in enumerate(behind) if word in CLAUSES and word != "until"), len(behind))
    behind = behind[:end]
    if verb == "make":
        return _made(behind)
    cues = _READINGS.get(verb)
    if cues is None:
        return ()
    present = set(behind)
    return next((verbs for cue, verbs in cues.items() if cue in present), ())


def _made(behind: Sequence[str]) -> tuple[str, ...]:
    """Return the meaning of "make": to make known is to announce, to make larger is to change."""
    if not _KNOWN.isdisjoint(behind):
        return "publish", "announce", "disclose", "expose", "enable"
    end = next((place for place, word in enumerate(behind) if word in PREPOSITIONS and place), len(behind))
    if end > 1:
        quality, shares = behind[end - 1], lexicon().share(behind[end - 1])
        if quality in lexicon().others or shares[2] > sum(shares[:2]):
            return ("change",)
    return ("create",) if behind and behind[0] in _ARTICLES else ()


LAUNCHING: Final = listed("launching")  # verbs that set something going: "starts a job that deletes"
TAKING: Final = frozenset({"accept", "take", "receive"})  # verbs for the input: "Accepts a text and returns"
_INPUT: Final = listed("input")
_STARTING: Final = frozenset({"start", "begin", "continue", "resume", "initiate", "commence"})
_PLANNING: Final = word_set("schedule queue enqueue stage submit request")
_JOBS: Final = word_set("job jobs run runs task tasks execution workflow workflows process processes build crawl")
_WRAPPERS: Final = WRAPPERS | _JOBS
_FORMS: Final[dict[str, FormName]] = {"that": "third", "which": "third", "to": "base", "for": "gerund", "of": "gerund"}
"""Form of the inner verb by the word before it."""
_FRAME_REACH: Final = 8


def inner_verb(verb: str, sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb behind the object of a launching verb and its place: a job that deletes, a request to delete."""
    if verb in _STARTING and at + 1 < len(sentence) and (found := verb_in_form(sentence[at + 1], "gerund")):
        return found, at + 1
    if verb not in LAUNCHING:
        return None
    for place in range(at + 1, min(at + _FRAME_REACH, len(sentence) - 2)):
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
    found = _participle(sentence[after])
    return (found, after) if found else None


def behind_condition(sentence: Sequence[str]) -> int | None:
    """Return the place behind the comma of a leading clause or phrase: "If it exists, removes", "For a given id, …"."""
    if not sentence or (sentence[0] not in CLAUSES and sentence[0] not in _LEADING_PHRASES):
        return None
    return next(
        (at + 1 for at, (word, after) in enumerate(pairwise(sentence)) if word == "," and after not in _AND), None
    )


_AND: Final = frozenset({"and", "or", "but"})  # words by which a clause goes on behind a comma
_LEADING_PHRASES: Final = (PREPOSITIONS | {"given", "upon", "depending"}) - {"to", "and", "or", "using"}


def verb_in_form(word: str, form: FormName) -> str | None:
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


READING: Final = "get"  # verb for phrases that name a result
_NOMINAL_REACH: Final = 8


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
    for at, word in enumerate(sentence[:_NOMINAL_REACH]):
        if word in PREPOSITIONS or word in CLAUSES or not word[0].isalnum():
            if phrase:
                break
        elif word not in DETERMINERS:
            phrase.append(at)
        elif phrase:
            return []
    return phrase


Hint = tuple[str, int]  # a verb, and the place of the word that names it
_ENTERING: Final = frozenset({"submit", "enter"})
_DESTINATIONS: Final = dict.fromkeys(("trash", "deletion", "bin"), "delete") | dict.fromkeys(
    ("archive", "archives"), "archive"
)


def hinted_verb(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
    for verbs, find in _FINDERS:
        if verb in verbs and (found := find(verb, sentence, at)):
            return found
    return None


def _destined(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find what a thing is marked as, or scheduled for: "as deleted", "for deletion", "to be deleted"."""
    for place in range(at + 2, min(at + 2 * REACH, len(sentence) - 1)):
        word, behind = sentence[place], sentence[place + 1]
        if (word, behind) == ("to", "be"):
            return passive_verb(sentence, place + 1)
        if word == "for":
            nouns = ((action_noun(noun), at) for at, noun in enumerate(sentence[place + 1 : place + 3], place + 1))
            found = next(((verb, at) for verb, at in nouns if verb), None)
        else:
            said = place + (word in {"as", "to"})
            verb = _participle(sentence[said]) if said > place or behind in {"status", "state"} else None
            found = (verb, said) if verb else None
        if found:
            return found
    return None


def _moved(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find a destination that is as good as an action: "to the trash"."""
    for place in range(at + 2, min(at + REACH + 2, len(sentence))):
        if found := _DESTINATIONS.get(sentence[place]):
            return found, place
    return None


def _ended(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the opposite of what stops: "stops following" is unfollow."""
    return _undone(sentence[at + 1], at + 1) if sentence[at + 1 : at + 2] and sentence[at + 1].endswith("ing") else None


def _lifted(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the opposite of what is removed: "removes the lock" is unlock."""
    places = range(at + 1, min(at + REACH + 2, len(sentence)))
    return next((found for place in places if (found := _undone(sentence[place], place))), None)


def _reversed(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find a removal that is taken back: "cancels the deletion of a key" is restore."""
    for place in object_places(sentence, at + 1)[-2:]:
        classes = operation_classes(action_noun(sentence[place]) or "")
        if classes is not None and classes.main == "DELETE":
            return "restore", place
    return None


def _hint_made(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the action that a thing stands for: "creates a payment", "submits a verification code"."""
    phrase = object_places(sentence, at + 1)
    for place in reversed(phrase if verb in _ENTERING else phrase[-1:]):
        if found := named_verb(sentence[place]):
            return found, place
    return None


def _undone(word: str, place: int) -> Hint | None:
    return next(((f"un{one.verb}", place) for one in lemmas(word) if f"un{one.verb}" in meanings().hand), None)


def _participle(word: str) -> str | None:
    found = lemmas(word.rpartition("-")[2])
    return next((lemma.verb for lemma in found if lemma.form in {"past", "participle"}), None)


_FINDERS: Final[tuple[tuple[frozenset[str], Callable[[str, Sequence[str], int], Hint | None]], ...]] = (
    (word_set("mark flag schedule queue set stage put label declare designate send assign"), _destined),
    (word_set("move send put transfer drop throw place"), _moved),
    (word_set("stop end cease"), _ended),
    (word_set("cancel reverse revert undo abort"), _reversed),
    (word_set("remove delete lift clear drop take revoke cancel end"), _lifted),
    (word_set("create add open generate register record issue log place enter submit enable allow permit"), _hint_made),
)
