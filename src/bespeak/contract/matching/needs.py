"""Needs as people and models write them: the words that count, what is to be done, and whether facts are asked for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import THINGS
from bespeak.text.language.names import stem
from bespeak.text.language.sentence import listed, word_set

LONGEST: Final = 4_000  # characters of a need that are read
_OPENING: Final = 600  # characters of a need in which its verb is
_MOST: Final = 200  # words of a need that are read
_WORD: Final = re.compile(r"[^\W_]{2,40}")
_FILLERS: Final = listed("fillers-of-needs")


def words(text: str) -> list[str]:
    """Return the significant words of a text, roughly stemmed."""
    return [stem(word) for word in _WORD.findall(text[:50_000].lower())[:2_000] if word not in _FILLERS]


SYNONYMS: Final = {stem(word): tuple(f"={thing}" for thing in things) for word, things in THINGS.items()}
"""Stems with the marks of the groups of words for the same thing that they belong to."""

_POLITE: Final = re.compile(
    r"^(?:\s*(?:hey|hi|hello|ok|okay|so|well|and|then|now|please|kindly|yes|just"
    r"|(?:can|could|would|will) (?:you|u|i|we)(?: please| kindly)?(?: help (?:me|us)(?: to)?)?"
    r"|i(?:'d| would) (?:really )?(?:like|love)(?: you)? to|i'd like|i (?:really )?(?:want|need|have)(?: you)? to"
    r"|i wanna|i(?:'m| am) (?:trying|looking|going) to|we (?:want|need|have) to|let(?:'s| us| me)"
    r"|help (?:me|us)(?: to)?"
    r"|is it possible to|(?:what is|what's) the (?:best )?way to|(?:do|would) you mind"
    r"|how (?:do|can|could|would|should) (?:i|we|you)(?: go about)?|how to|go ahead and|be sure to|make sure to"
    r"|i(?:'m| am) hoping to|i was wondering if you (?:can|could)|tell me how to|show me how to)\b[\s,:]*)+",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(
    r"^\s*(?:what|which|who|whose|whom|when|where|why|how|is|are|was|were|am|do|does|did|has|have|should|any"
    r"|i(?:'m| am) looking for|looking for|i need (?:a|an|some|the)\b|tell me|show me|give me|let me know"
    r"|i(?:'d| would)? (?:like|want|need) to (?:know|see|hear)|i wonder|do you know|got any)\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"^\s*(?:what|which|who|whose|when|where|why|how (?:many|much|long|far|old|often)|is|are|was|were|does|did|has)\b",
    re.IGNORECASE,
)


_VALUES: Final = frozenset(
    stem(word)
    for word in word_set(
        "one two three four five six seven eight nine ten eleven twelve hundred thousand next last today tonight "
        "tomorrow yesterday morning noon afternoon evening night midnight day week weekend month year person people "
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
        "september october november december"
    )
)


def is_value(term: str) -> bool:
    """Return True if a term is a number or a time, which are said for arguments rather than for an endpoint."""
    return term in _VALUES or term[0].isdigit()


_REFERRING: Final = word_set("it that this them those these one ones first second third last same again more")


class Need(NamedTuple):
    """A need as it is matched."""

    text: str
    words: tuple[str, ...]  # in lower case, with those that say nothing
    terms: tuple[str, ...]  # stems of the words that say something, each once
    verbs: tuple[str, ...]  # what is to be done, in the base form
    object: str  # what it says beside its first verb: with what something is done
    asks: bool  # True for a question about facts, which nothing that changes them can answer
    refers: bool  # True if it says only what to do, with something that was spoken of before: "book the first one"


def read_need(text: str) -> Need:
    """Read what a person or a model asks for. Of a long text only the beginning is read."""
    return _read(text[:LONGEST])  # the cache keeps its keys


@lru_cache(maxsize=1024)
def _read(text: str) -> Need:
    thing = behind = _POLITE.sub("", text[:_OPENING])
    if _ASKING.match(behind):
        verbs: tuple[str, ...] = ("find", "get")
    else:
        heads = head_verbs(behind)
        verbs = tuple(dict.fromkeys(head.verb for head in heads if head.kind != "own"))
        thing = behind[: heads[0].start] + behind[heads[0].end :] if heads else behind
    found = tuple(_WORD.findall(text.lower()))[:_MOST]
    terms = dict.fromkeys(stem(word) for word in found if word not in _FILLERS)
    others = terms.keys() - _REFERRING - {stem(verb) for verb in verbs}
    refers = not others and not _REFERRING.isdisjoint(found)
    return Need(text, found, tuple(terms), verbs, thing, _QUESTION.match(behind) is not None, refers)
