"""Hints: words behind a verb that name the action. They can support a method, but never contradict one.

To create a payment is to pay, to mark a file as deleted is to delete it, and to remove a lock is to unlock; but the
same words may describe the thing that was paid, deleted or locked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bespeak.text.language.frame import passive_verb
from bespeak.text.language.light_verb import REACH, action_noun, named_verb, object_places
from bespeak.text.language.meanings import meanings
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import word_set
from bespeak.text.language.verb_form import lemmas

Hint = tuple[str, int]
"""A verb, and the place of the word that names it."""

_ENTERING: Final = frozenset({"submit", "enter"})
_DESTINATIONS: Final = dict.fromkeys(("trash", "deletion", "bin"), "delete") | dict.fromkeys(
    ("archive", "archives"), "archive"
)


def hinted_verb(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Return the verb that a word behind another verb names."""
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


def _made(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
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
    (word_set("create add open generate register record issue log place enter submit enable allow permit"), _made),
)
