"""The one knowledge of names: their words, number, abbreviations and spelling, and the verbs that APIs put in them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from bespeak.text.identifiers import apart
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.operation_class import CHANGING, operation_classes
from bespeak.text.language.sentence import groups, listed, names, word_set

_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
_UNDOING: Final = re.compile(r"\bun (?=[a-z])")  # a prefix that is written apart: `unSuspend`
_LONGEST: Final = 60
HISSING: Final = ("s", "x", "z", "ch", "sh")
VOWELS: Final = tuple("aeiou")
_LIKE_YOU: Final = tuple(word_set("uni url uri use usa usu uti eu ubi one once"))  # a user, but an upload
_SPELLED: Final = str.maketrans(  # spellings of letters that ASCII does not have
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ø": "o", "ł": "l"}
)
MANNERS: Final = word_set("batch bulk mass multi")  # words before a verb that say how many things it is about
_JOINED: Final = frozenset({"re", "dry"})  # words that make one verb with the next: re-run, dry-run
_NO_PLURALS: Final = word_set(
    "news series species dns sms gps https aws ios kubernetes canvas alias atlas redis debris exists"
)
_IRREGULAR: Final = names("irregular-plurals")


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words: `createPet`, `create_pet` and `create-pet` give the same ones."""
    text = text[:400]
    if not text.isascii():
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFC", text).translate(_SPELLED))
        text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = _UNDOING.sub("un", " ".join(_NO_WORD.split(apart(text))).lower())
    return tuple(text.split())


@lru_cache(maxsize=4096)
def without_manner(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name from its verb on: `batchGetItem` and `re-run` begin with `get` and `rerun`."""
    if len(parts) > 1 and parts[0] in MANNERS:
        return parts[1:]
    return (parts[0] + parts[1], *parts[2:]) if len(parts) > 1 and parts[0] in _JOINED else parts


def snake_case(text: str, otherwise: str = "field") -> str:
    """Return a name in snake_case that starts with a letter."""
    if not (name := "_".join(words(text))[:_LONGEST].strip("_")):
        return otherwise
    return name if name[0].isalpha() else f"{otherwise}_{name}"


@lru_cache(maxsize=8192)
def hyphenated(text: str) -> str:
    """Join the words of a name into a path segment; empty if it has none."""
    return "-".join(words(text))[:_LONGEST].strip("-")


@lru_cache(maxsize=4096)
def plural(word: str) -> str:
    """Return the plural of the last word in a segment; a plural stays as it is."""
    if word in _IRREGULAR:
        return word
    return with_s(word) if word.endswith(("ss", "us", "sis", "xis")) or not word.endswith("s") else word


def with_s(word: str) -> str:
    """Add an s, as regular plurals and third persons have it."""
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(HISSING) else "s")


def with_article(thing: str) -> str:
    """Put a or an before a thing in the singular."""
    if is_plural(thing.rpartition(" ")[2]):
        return thing
    vowel = thing.startswith(("hour", "honest", "heir")) or (thing[:1] in VOWELS and not thing.startswith(_LIKE_YOU))
    return f"{'an' if vowel else 'a'} {thing}"


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    if word in _IRREGULAR or not is_plural(word):
        return _IRREGULAR.get(word, word)
    nouns = lexicon().nouns
    # `movie` and `pie` are nouns, unlike `movy` and `py`.
    if word.endswith("ies") and len(word) > 4 and (word[:-1] not in nouns or word[:-3] + "y" in nouns):
        return word[:-3] + "y"
    hissing = word.endswith(("sses", "shes", "ches", "xes", "zes", "uses")) and word[:-1] not in lexicon().verbs
    if hissing and not lexicon().counts(word[:-1]).noun:
        return word[:-2]  # branches; but caches and houses are of `cache` and `house`
    return word[:-1]


@lru_cache(maxsize=8192)
def is_plural(word: str) -> bool:
    looks_plural = word.endswith("s") and not word.endswith(("ss", "us", "sis", "xis"))
    return (looks_plural and len(word) > 3 and word not in _NO_PLURALS) or word in _IRREGULAR


@lru_cache(maxsize=8192)
def main_class(word: str) -> str:
    """Return the class of operations that a word in lower case mostly names; empty if it names none."""
    classes = operation_classes(word)
    return classes.main if classes is not None else ""


ABBREVIATIONS: Final = names("abbreviations")  # of the words that APIs and vocabularies use, by short form
CURSORS: Final = listed("cursors")
PAGES: Final = word_set("page page_number")
OFFSETS: Final = listed("offsets")
LIMITS: Final = listed("limits")
"""Names of inputs that ask for a page of a list, in words joined by `join`: a cursor, a page, an offset, a limit."""


@lru_cache(maxsize=16_384)
def stems(name: str) -> tuple[str, ...]:
    """Split a name into its words, in singular and without abbreviations; `idBoard` is the id of a board."""
    unshortened = (ABBREVIATIONS.get(word, word) for word in words(name[:120]))
    found = [ABBREVIATIONS.get(singular(word), singular(word)) for word in unshortened]
    for at in range(len(found) - 1):
        if found[at] == "e" and found[at + 1] == "email":  # e-mail
            found[at] = ""
    found = [word for word in found if word]
    return (*found[1:], "id") if found[:1] == ["id"] else tuple(found)


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return roughly what the forms of a word in prose have in common; of a name, `singular` is the exact form."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    # What is left of merged and merging is merg, of cancelled cancell: so all words lose such an end.
    word = word[:-1] if len(word) >= 5 and word[-1] == "e" else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou" else word


def join(parts: tuple[str, ...]) -> str:
    return "_".join(parts)


METHODS: Final = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})  # those of HTTP
RELATING: Final = word_set("by for from to of in on with using via and or")  # They end the thing that a name is about.
COMMANDS: Final = word_set("search query checkout count login signin logon logout signout logoff signup upload")
"""Nouns that are commands at the end of a path."""
LIGHT: Final = frozenset({"place", "make", "do", "perform", "take"})  # verbs whose object names the action: placeOrder
ENDINGS: Final = word_set("list create retrieve update destroy delete get search query put patch insert exists")
"""Verbs that are written after the noun: orders_list, userExists."""
_OTHER_NAMES: Final = {word: sorted(group - {word}) for group in groups("synonyms") for word in group}
VERBS_FOR: Final = {word: tuple(verbs.split(",")) for word, verbs in names("spoken-verbs").items()}
"""Verbs of the catalog for a word that APIs use as a verb, and that the catalog lacks or understands differently."""
SPOKEN: Final = frozenset(VERBS_FOR)
"""Words that are verbs in a name, although they may be nouns or are not in a dictionary."""
SAME_VERB: Final = listed("same-verb")  # They keep the meaning. Of others something is lost, so they stay in the path.


def other_names(term: str) -> list[str]:
    """Return names that mean the same as a term in an API: `reservation` for `booking`."""
    return _OTHER_NAMES.get(term, [])


@lru_cache(maxsize=4096)
def changes(word: str) -> bool:
    """Return True if a word mostly names a change."""
    return main_class(word.lower()) in CHANGING
