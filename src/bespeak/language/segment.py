"""Verbs in path segments (AGIS 5): /get-restaurant and /create hold one, /booking and /order-history do not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from bespeak.language.lexicon import Lexicon, lexicon
from bespeak.language.verb_form import classify, lemmas

Tier = Literal["error", "warning"]
Reason = Literal["question", "method", "alone", "third person", "first", "last", "joined"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LONGEST: Final = 80
"""Characters; a longer segment is no name."""

_QUESTIONS: Final = frozenset(("is", "has", "have", "does", "can", "are", "should"))
_VERB_PREFIXES: Final = ("re", "un", "de", "dis", "mis")
"""What stands before verbs only; a "sub" or "pre" may as well begin a noun."""
_NOUN_SHARE: Final = 0.06
"""A word that is a noun less often than this is a verb."""
_ADJECTIVE_SHARE: Final = 0.5
_MANNERS: Final = frozenset(("bulk", "batch", "mass", "multi", "auto", "quick", "soft", "hard", "force", "self"))
"""Words that tell how something is done: what is left of /bulk-delete names nothing."""
_METHODS_OF_ALL: Final = frozenset(
    ("add", "create", "delete", "fetch", "find", "get", "make", "remove", "send", "update")
)
"""Verbs that belong before the path; the noun for them (creation) would only hide that."""
_NOUN_ENDINGS: Final = (
    ("e", "ion"),
    ("e", "ation"),
    ("", "ation"),
    ("y", "ication"),
    ("", "lation"),
    ("", "ion"),
    ("", "ment"),
    ("e", "al"),
    ("", "al"),
)


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    """A verb in a segment: `reason` says where it stands, `instead` is a segment without it if there is one."""

    tier: Tier
    verb: str
    reason: Reason
    instead: str | None = None


@lru_cache(maxsize=8192)
def judge_segment(segment: str, method: str = "") -> SegmentVerdict | None:
    """What is wrong with a literal segment under a method; None if it names a thing."""
    if not (segment.isascii() and len(segment) <= _LONGEST):
        return None
    parts = [word.lower() for word in _WORD.findall(segment)]
    if not parts:
        return None
    words = lexicon()
    if len(parts) == 1:
        return _alone(parts[0], method.lower(), words)
    return _several(parts, method.lower(), words)


def _alone(word: str, method: str, words: Lexicon) -> SegmentVerdict | None:
    if word == method:
        return SegmentVerdict("warning", word, "method", _noun(word, words))
    if is_plain_verb(word, words):
        return SegmentVerdict("error", word, "alone", _noun(word, words))
    if word in words.paths["alone"]:
        return SegmentVerdict("warning", word, "alone", _noun(word, words))
    if verb := _third_person(word, words):
        return SegmentVerdict("error", verb, "third person")
    form = classify(word)
    if form.kind == "compound" and form.base in words.paths["sure"]:
        tier: Tier = "error" if form.base == method else "warning"
        return SegmentVerdict(tier, form.base, "joined", form.rest)
    return None


def _several(parts: list[str], method: str, words: Lexicon) -> SegmentVerdict | None:
    first, last = parts[0], parts[-1]
    rest = "-".join(parts[1:])
    if first in _QUESTIONS:
        return SegmentVerdict("error", first, "question")
    if first == method:
        return SegmentVerdict("error", first, "method", rest)
    if found := _leading(first, last, words):
        return SegmentVerdict(found, first, "first", rest)
    if is_plain_verb(last, words):
        start = "-".join(parts[:-1])
        return SegmentVerdict("error", last, "last", None if start in _MANNERS else start)
    return None


def _leading(first: str, last: str, words: Lexicon) -> Tier | None:
    """Whether the first word is a verb with the others as its object."""
    paths = words.paths
    if first in paths["strict"]:
        return "error"
    head = last in paths["heads"]
    if (first in paths["sure"] or is_plain_verb(first, words)) and not head:
        return "error"
    if first in paths["usual"] and not head:
        return "warning"
    return None


def is_plain_verb(word: str, words: Lexicon) -> bool:
    """Whether a word is a base form and hardly ever anything else; what APIs use as a thing is none."""
    if word in words.paths["things"]:
        return False
    counts = words.verbs.get(word)
    if counts is None:
        return word.startswith(_VERB_PREFIXES) and classify(word).kind == "base"
    total = sum(counts)
    if not total:
        return word not in words.nouns
    return counts.noun < _NOUN_SHARE * total and counts.adjective < _ADJECTIVE_SHARE * total


def _third_person(word: str, words: Lexicon) -> str | None:
    if not word.endswith("s") or word in words.nouns or classify(word).kind != "inflected":
        return None
    found = lemmas(word)
    return found[0].verb if found and all(is_plain_verb(verb, words) for verb, _ in found) else None


def _noun(verb: str, words: Lexicon) -> str | None:
    """A noun for what a verb does: validate has validation."""
    if verb in _METHODS_OF_ALL:
        return None
    for end, ending in _NOUN_ENDINGS:
        if verb.endswith(end) and (noun := verb.removesuffix(end) + ending) in words.nouns:
            return noun
    return None
