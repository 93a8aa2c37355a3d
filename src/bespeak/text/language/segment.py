"""Verbs in path segments (AGIS 5): /get-restaurant and /create contain one, /booking and /order-history do not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from bespeak.text.language.lexicon import Lexicon, lexicon
from bespeak.text.language.verb_form import PARTICLES, classify, lemmas

Tier = Literal["error", "warning"]
Reason = Literal["question", "method", "alone", "third person", "past", "first", "inside", "last", "joined"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LONGEST: Final = 80
"""Maximum length of a segment in characters."""

_QUESTIONS: Final = frozenset(("is", "has", "have", "does", "can", "are", "should"))
_VERB_PREFIXES: Final = ("re", "un", "de", "dis", "mis")
"""Prefixes of verbs only; "sub" or "pre" may also begin a noun."""
_NOUN_SHARE: Final = 0.06
"""Minimum share of noun uses: below it a word is a verb."""
_ADJECTIVE_SHARE: Final = 0.5
_SEEN: Final = 4
"""Count of one use in the counted texts, in quarters."""
_MANNERS: Final = frozenset(("bulk", "batch", "mass", "multi", "auto", "quick", "soft", "hard", "force", "self"))
"""Words of manner: without the verb, /bulk-delete names nothing."""
_METHODS_OF_ALL: Final = frozenset(
    ("add", "create", "delete", "fetch", "find", "get", "make", "remove", "send", "update")
)
"""Verbs that belong into the method; their noun (creation) would only hide that."""
_ENDINGS: Final = (
    *(("e", "ion"), ("", "lation"), ("e", "ation"), ("", "ation"), ("y", "ication"), ("", "ion")),
    *(("", "ment"), ("e", "al"), ("", "al")),
)
"""Endings that turn a verb into a noun, likelier first: removed and added letters."""
_PARTICLES: Final = frozenset((*PARTICLES, "in", "on"))


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    """A verb in a segment: `reason` says where it stands, `instead` is a segment without it if there is one."""

    tier: Tier
    verb: str
    reason: Reason
    instead: str | None = None


def judge_segment(segment: str, method: str = "") -> SegmentVerdict | None:
    """Return what is wrong with a literal segment under a method; None if it names a thing."""
    # Before the cache, which is to hold short words only.
    if len(segment) > _LONGEST or not segment.isascii():
        return None
    return _judge(segment, method.lower() if len(method) <= _LONGEST else "")


@lru_cache(maxsize=8192)
def _judge(segment: str, method: str) -> SegmentVerdict | None:
    parts = [word.lower() for word in _WORD.findall(segment)]
    if not parts:
        return None
    words = lexicon()
    if len(parts) > 1 and _is_phrase(parts[0], parts[1].removesuffix("s"), words):
        parts[:2] = ["".join(parts[:2])]
    if len(parts) == 1:
        return _alone(parts[0], method, words)
    camel = segment[0].islower() and segment.isalpha()
    return _several(parts, camel, method, words)


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
    if form.inflection == "past" and form.base is not None and len(word) > 3 and not words.counts(word).noun:
        # A warning at most: /archived may be what people call the things in it.
        return SegmentVerdict("warning", form.base, "past")
    if form.kind != "compound" or form.base is None:
        return None
    if form.base == method:
        return SegmentVerdict("error", method, "method", form.rest)
    if form.base in words.paths["sure"] or is_plain_verb(form.base, words):
        return SegmentVerdict("warning", form.base, "joined", form.rest)
    return None


def _is_phrase(first: str, second: str, words: Lexicon) -> bool:
    """Return True if two words are a noun that is also written as one: check-in, add-on."""
    joined = first + second
    return second in _PARTICLES and (joined in words.nouns or joined in words.lists["phrasal"])


def _several(parts: list[str], camel: bool, method: str, words: Lexicon) -> SegmentVerdict | None:
    first, last = parts[0], parts[-1]
    rest = "-".join(parts[1:])
    if first in _QUESTIONS:
        return SegmentVerdict("error", first, "question")
    if first == method:
        return SegmentVerdict("error", first, "method", rest)
    if found := _leading(parts, camel, words):
        return SegmentVerdict(found, first, "first", rest)
    if is_plain_verb(last, words):
        start = "-".join(parts[:-1])
        return SegmentVerdict("error", last, "last", None if start in _MANNERS else start)
    inside = next((word for word in parts[1:-1] if is_plain_verb(word, words)), None)
    if inside and last not in words.paths["heads"]:
        return SegmentVerdict("warning", inside, "inside")
    return None


def _leading(parts: list[str], camel: bool, words: Lexicon) -> Tier | None:
    """Return True if the first word is a verb and the others are its object."""
    paths, first, last = words.paths, parts[0], parts[-1]
    if first in paths["strict"]:
        return "error"
    head = last in paths["heads"]
    if first in paths["sure"] or is_plain_verb(first, words):
        if head:
            return "warning" if len(parts) > 2 else None
        return "error"
    if first not in paths["usual"]:
        return None
    call = first in paths["calls"]
    if head or last in paths["holders"]:
        return "warning" if len(parts) > 2 and (call or first == "list") else None
    return "error" if call and camel else "warning"


def is_plain_verb(word: str, words: Lexicon) -> bool:
    """Return True if a word is a base form and hardly ever anything else; words that APIs use as things are
    excluded.
    """
    if word in words.paths["things"]:
        return False
    if word not in words.verbs:
        return word.startswith(_VERB_PREFIXES) and classify(word).kind == "base"
    counts = words.counts(word)
    total = sum(counts)
    if not total:
        return word not in words.nouns
    return counts.noun < _NOUN_SHARE * total and counts.adjective < _ADJECTIVE_SHARE * total


def _third_person(word: str, words: Lexicon) -> str | None:
    """Return the verb of a form in -s that cannot be a plural: exists, contains; but fills and moves can."""
    if not word.endswith("s") or word in words.nouns or word[:-2] + "is" in words.nouns:
        return None
    if classify(word).kind != "inflected":
        return None
    found = lemmas(word)
    for verb, _ in found:
        counts = words.counts(verb)
        if counts.noun or counts.verb < _SEEN or not is_plain_verb(verb, words):
            return None
    return found[0].verb


def _noun(verb: str, words: Lexicon) -> str | None:
    """Return a noun for the action of a verb: validate gives validation."""
    if verb in _METHODS_OF_ALL:
        return None
    for end, ending in _ENDINGS:
        if verb.endswith(end) and (noun := verb.removesuffix(end) + ending) in words.nouns:
            return noun
    return None
