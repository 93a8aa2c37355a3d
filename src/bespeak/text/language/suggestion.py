"""Suggestions when method and intent contradict each other: a fitting verb or a fitting sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bespeak.text.language.consistency import judge
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.meanings import meanings
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.verb_form import classify
from bespeak.text.language.verb_match import fit

MOST: Final = 3
_USUAL: Final = (
    "find", "list", "fetch", "query", "create", "register", "update", "modify", "replace", "remove", "notify", "send",
)  # fmt: skip
"""Verbs that readers expect, preferred to others that fit as well."""
_LISTS: Final = ("list", "lists", "all", "every", "each")
_VOWELS: Final = "aeiou"
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HISSING: Final = ("s", "x", "z", "ch", "sh", "o")


def fitting_verbs(intent: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return at most three candidates that match the intent, best first."""
    heads = head_verbs(intent[:1000])
    if not heads:
        return ()
    head = heads[0].verb
    classes = operation_classes(head)
    rated: list[tuple[tuple[float, ...], str]] = []
    for candidate in candidates:
        verb = candidate.lower()
        score = fit(verb, head)
        own = operation_classes(verb)
        if score is None or own is None or score < 0.75 or judge(candidate, intent).verdict != "consistent":
            continue
        usual = float(_USUAL.index(verb) if verb in _USUAL else len(_USUAL))
        if verb == "list" and not any(word in intent.lower().split() for word in _LISTS):
            usual += 1.5
        related = meanings().synonymous(verb, head)
        same_class = classes is not None and own.main == classes.main
        rank = (verb != head, not same_class, usual == len(_USUAL) and not related, usual, -round(score, 2))
        rated.append((rank, candidate))
    return tuple(candidate for _, candidate in sorted(rated)[:MOST])


def fitting_sentence(method: str, path: str) -> str:
    """Write a sentence that begins with the method's action: BOOK /reservation "Books a reservation on behalf of …"."""
    names = [segment for segment in path[:200].split("/") if segment and "{" not in segment and ":" not in segment]
    segments = [name for name in names if name.lower() != method.lower()]
    thing = _WORD_START.sub(" ", segments[-1]).replace("-", " ").replace("_", " ").lower() if segments else "resource"
    base = classify(method).base or method.lower()
    verb = third_person(base)
    thing = thing.removeprefix(f"{base} ")
    return f"{verb.capitalize()} {_with_article(thing)} on behalf of the requesting agent"


def third_person(verb: str) -> str:
    """Return the third person of a verb: books, retries, dispatches."""
    for form, readings in _irregular_thirds(verb):
        if (verb, "third") in readings:
            return form
    if verb.endswith(_HISSING):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + "s"


def _irregular_thirds(verb: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return irregular third persons: verbs such as quiz double a letter, and the lexicon has these forms."""
    forms = (verb + verb[-1:] + "es", verb + "s", verb + "es")
    return [(form, lexicon().irregular[form]) for form in forms if form in lexicon().irregular]


def _with_article(thing: str) -> str:
    if thing.endswith("s") and not thing.endswith(("ss", "us", "is")):
        return thing
    return f"{'an' if thing[0] in _VOWELS else 'a'} {thing}"
