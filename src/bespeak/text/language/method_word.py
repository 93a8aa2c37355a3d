"""A word as a method (AGIS 4): one English verb in its base form, in capitals, that asks for something to be done."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.identifiers import PIECE
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.sentence import word_lists
from bespeak.text.language.verb_form import MANNERS, ActionIntent, Form, action_intent, classify, split_nouns

_VOWELS: Final = frozenset("aeiouy")
_SHORTEST: Final = 3
INFINITIVES: Final = ("ar", "er", "ir", "are", "ere", "ire", "en", "eren", "ieren", "ern", "eln", "re", "a")
"""Endings of infinitives, among others of Romance and Germanic languages."""
_ENGLISH: Final = (
    *("able", "ible", "ally", "ely", "kly", "ness", "ment", "ship", "tion", "sion", "ance", "ence", "ology", "ity"),
    *("ful", "less", "ous", "ing", "ings", "ers", "ors"),
)  # endings of English words that are not base forms of verbs


def may_be_foreign(word: str, near: Sequence[str] = ()) -> bool:
    """Return True if an unknown word can be a foreign verb, and is not rather a slip for one of `near`."""
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


Kind = Literal[
    "whitespace", "inflected", "characters", "compound", "case", "phrasal", "unknown", "foreign", "length",
    "http", "state", "being", "noun", "vague",
]  # fmt: skip # what can be wrong with a method: first its form, then its meaning
HTTP_METHODS: Final = word_lists(  # the methods AGIS 4.3 rules out, and verbs that say what is usually meant by them
    "GET=FETCH,RETRIEVE POST=CREATE,SUBMIT PUT=REPLACE DELETE=REMOVE,CANCEL PATCH=MODIFY,UPDATE HEAD=CHECK "
    "OPTIONS=DISCOVER,DESCRIBE CONNECT=LINK,JOIN TRACE=TRACK,FOLLOW"
)
_BY_GROUP: Final[dict[str, Kind]] = {"condition": "state", "thing": "noun"}
_SIGNS: Final = {
    "_": "an underscore", "-": "a hyphen", ".": "a dot", "/": "a slash", ":": "a colon", "+": "a plus sign",
}  # fmt: skip
_LONGEST: Final = 32
_NAMESPACED: Final = re.compile(r"([a-z][a-z0-9-]*)\.([A-Z]+)")


class MethodFault(NamedTuple):
    """A reason why a word is not a good method."""

    kind: Kind
    message: str
    advice: str = ""
    instead: str = ""  # the method to write, if there is one choice
    safe: bool = False  # True if writing `instead` keeps the meaning


def judge_method(method: str) -> tuple[MethodFault, ...]:
    """List what the drafts and the lexicon find wrong with a method, apart from any catalog."""
    if len(method) <= _LONGEST:
        return _judge(method)
    # No verb is that long, so there is nothing to look up.
    fault = _characters(method[:_LONGEST]) or MethodFault("unknown", f"{brief(method)} is not a verb")
    length = f"{brief(method)} has {len(method)} letters"
    return fault, MethodFault("length", length, "Write one verb of 3 to 32 letters.")


@lru_cache(maxsize=4096)
def _judge(method: str) -> tuple[MethodFault, ...]:
    if not method.strip():
        return ()  # pass 1 says that it is missing
    if (fault := _characters(method)) is not None:
        return (fault,)
    name = method.upper()
    if name in HTTP_METHODS:
        verbs = HTTP_METHODS[name]
        return (MethodFault("http", f"{method} is a method of HTTP", f"Write {' or '.join(verbs)}.", verbs[0]),)
    form, verdict = classify(method), action_intent(method)
    if verdict.kind == "state" and form.kind != "compound":
        kind = _BY_GROUP.get(verdict.group, "being")
        advice = _meant(verdict, "Write what is to be done.")
        return (MethodFault(kind, f"{method} is not an action: {verdict.reason}", advice),)
    if (fault := _form(method, form)) is not None:
        return (fault,)
    found = []
    if form.kind == "phrasal":
        message = f"{method} is a verb and a particle in one word"
        found.append(MethodFault("phrasal", message, "A plain verb reads better."))
    if verdict.kind == "borderline":
        message = f"{method} is not a clear action: {verdict.reason}"
        found.append(MethodFault("vague", message, _meant(verdict, "Choose a plainer verb.")))
    if len(method) < _SHORTEST:
        found.append(MethodFault("length", f"{method} has {len(method)} letters", "Write a verb of 3 to 32 letters."))
    if method != name:
        found.append(MethodFault("case", f"{method} is not in capitals", f"Write {name}.", name, safe=True))
    return tuple(found)


def _characters(method: str) -> MethodFault | None:
    if method.isascii() and method.isalpha():
        return None
    shown = method if method.isprintable() and " " not in method and method.isascii() else brief(method)
    return _spaces(method) or _separators(method, shown) or _odd_character(method, shown)


def _spaces(method: str) -> MethodFault | None:
    words = method.split()
    if len(words) > 1:
        verb, things = _verb_and_things(words)
        return MethodFault("whitespace", f"{brief(method)} is {len(words)} words", _write(verb, things), verb)
    if not words or method == method.strip():
        return None
    message, advice = f"{brief(method)} has spaces around it", f"Write {words[0]}."
    return MethodFault("whitespace", message, advice, words[0], safe=True)


def _separators(method: str, shown: str) -> MethodFault | None:
    """Report a namespace before a method, or words that signs join."""
    if (namespaced := _NAMESPACED.fullmatch(method)) is not None:
        verb = namespaced[2]
        advice = f"Write {verb}; the namespace stands in the vocabulary block."
        return MethodFault("characters", f"{shown} has the namespace {namespaced[1]} in it", advice, verb)
    pieces = re.split(r"[^A-Za-z]+", _plain(method).strip("_-./:+0123456789"))
    sign = next((char for char in method if not char.isalnum()), "")
    if not sign or len(pieces) < 2 or not all(pieces):
        return None
    verb, things = _verb_and_things(pieces)
    message = f"{shown} joins {len(pieces)} words with {_SIGNS.get(sign, brief(sign))}"
    return MethodFault("compound", message, _write(verb, things), verb)


def _odd_character(method: str, shown: str) -> MethodFault:
    odd = next(char for char in method if not (char.isascii() and char.isalpha()))
    what = "a digit" if odd.isdecimal() else _SIGNS.get(odd, brief(odd))
    letters = _plain(method).strip("_-./:+!?0123456789").upper()
    if not letters.isalpha():
        return MethodFault("characters", f"{shown} has {what} in it", "Write a verb with the letters A to Z.")
    return MethodFault("characters", f"{shown} has {what} in it", f"Write {letters}.", letters)


def _plain(method: str) -> str:
    """Return the text without accents: E for É."""
    return unicodedata.normalize("NFKD", method).encode("ascii", "ignore").decode("ascii")


def _form(method: str, form: Form) -> MethodFault | None:
    if form.kind == "inflected" and form.base is not None:
        verb = _action(form.base)
        shown = "past tense" if form.inflection == "past" else form.inflection
        return MethodFault("inflected", f"{method} is a {shown}", f"Write {verb}.", verb)
    pieces = PIECE.findall(method)
    joined = len(pieces) > 1 and not method.isupper()
    if form.kind == "compound" and form.base is not None and form.rest is not None and not joined:
        words = lexicon()
        usual = form.base in words.lists["methods"] or form.base in words.paths["usual"]
        # A rare verb and a noun are in a word of another language by chance: FIN and DEN.
        if not usual and method.lower().endswith(INFINITIVES):
            return MethodFault("unknown", f"{method} is not a known verb")
        verb = _action(form.base)
        what = "a verb and a noun" if form.rest else "two words"
        return MethodFault("compound", f"{method} joins {what}", _write(verb, form.rest), verb)
    if joined and form.kind in ("compound", "unknown"):
        verb, things = _verb_and_things(pieces)
        return MethodFault("compound", f"{method} joins {len(pieces)} words", _write(verb, things), verb)
    return MethodFault("unknown", f"{method} is not a known verb") if form.kind == "unknown" else None


def _verb_and_things(pieces: list[str]) -> tuple[str, str]:
    """Split joined words into the verb and the rest as a path segment."""
    lower = [piece.lower() for piece in pieces]
    verbs = [(at, form.base) for at, piece in enumerate(lower) if (form := classify(piece)).base] or [(0, lower[0])]
    sure = lexicon().paths["sure"]
    at, base = next((found for found in verbs if found[1] in sure), verbs[0])
    if lower[at] in MANNERS and len(verbs) > 1:
        at, base = verbs[1]
    rest = [piece for number, piece in enumerate(lower) if number != at and piece.isalpha() and piece not in MANNERS]
    verb = _action(base or pieces[at])
    # What follows a state is what is true of the thing, not the thing: isAvailable, hasSeats.
    return verb, "" if action_intent(base or "").kind == "state" else "-".join(rest)


def _action(base: str) -> str:
    """Return the method to suggest for a verb: never one that is itself refused."""
    name = base.upper()
    if name in HTTP_METHODS:
        return HTTP_METHODS[name][0]
    verdict = action_intent(base)
    return verdict.instead[0] if verdict.kind == "state" and verdict.instead else name


def _write(verb: str, things: str) -> str:
    return f"Write {verb} /{things}." if things else f"Write {verb}."


def _meant(verdict: ActionIntent, otherwise: str) -> str:
    return f"Write {' or '.join(verdict.instead)}, if that is meant." if verdict.instead else otherwise
