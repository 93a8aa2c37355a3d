"""Verbs in path segments (AGIS 5): /get-restaurant and /create contain one, /booking and /order-history do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from bespeak.text.identifiers import pieces
from bespeak.text.language.lexicon import Lexicon, lexicon, meanings
from bespeak.text.language.names import MANNERS as MANY
from bespeak.text.language.names import is_plural, singular
from bespeak.text.language.sentence import word_set
from bespeak.text.language.verb_form import MAKERS, MANNERS, PARTICLES, Inflection, classify, lemmas

Tier = Literal["error", "warning"]
Reason = Literal[
    "question", "method", "infinitive", "alone", "form", "past", "first", "first form", "inside", "last", "last form",
    "joined", "tail",
]  # fmt: skip
_LONGEST: Final = 80  # maximum length of a segment in characters
_QUESTIONS: Final = word_set("is has have does can are should was were did would could")
_VERB_PREFIXES: Final = ("re", "un", "de", "dis", "mis")  # prefixes of verbs only; "sub" or "pre" may also begin a noun
_NOUN_SHARE: Final = 0.06  # minimum share of noun uses: below it a word is a verb
_ADJECTIVE_SHARE: Final = 0.5
_VERB_SHARE: Final = 0.5
_SURELY: Final = 0.6  # minimum verb share before a noun that makes compounds: startJob, not bookTitle
_SEEN: Final = 4  # count of one use in the counted texts, in quarters
_METHODS_OF_ALL: Final = word_set("add create delete fetch find get make remove send update")  # a noun would hide them
_THINGS: Final = word_set("finding making onboarding offboarding roaming tagging")
"""Forms of verbs that name things in paths, although dictionaries do not say so."""
_COMMANDS: Final = frozenset(("list", "patch", "put"))  # verbs that stay verbs before a compound noun: /putImagePolicy
_SETTERS: Final = frozenset(("set", "show", "toggle"))  # verbs before any noun of a function: /toggleStatus
_PROTECTED: Final = 0.1  # minimum share of noun uses that protects a past form: left, but not found
_ENDINGS: Final = (
    *(("e", "ion"), ("", "lation"), ("e", "ation"), ("", "ation"), ("y", "ication"), ("", "ion")),
    *(("", "ment"), ("e", "al"), ("", "al")),
)  # endings that turn a verb into a noun, likelier first: removed and added letters
_PARTICLES: Final = frozenset((*PARTICLES, "in", "on"))


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    """A verb in a segment: `reason` says where it stands, `instead` is a segment without it if there is one."""

    tier: Tier
    verb: str
    reason: Reason
    instead: str | None = None


def judge_segment(segment: str, method: str = "", *, last: bool = False) -> SegmentVerdict | None:
    """Return what is wrong with a segment, or None; the `last` one has a resource before it: /user/search."""
    # Before the cache, which is to hold short words only.
    if len(segment) > _LONGEST or not segment.isascii():
        return None
    form = classify(method)
    verb = form.base if form.kind == "inflected" and form.base else method.lower()
    found = _judge(segment, verb if len(verb) <= _LONGEST else "")
    if found is None and last and segment in lexicon().paths["tails"]:
        return SegmentVerdict("warning", segment, "tail")
    return found


@lru_cache(maxsize=8192)
def _judge(segment: str, method: str) -> SegmentVerdict | None:
    if not (parts := [word.lower() for word in pieces(segment)]):
        return None
    words = lexicon()
    if len(parts) > 1:
        second = parts[1].removesuffix("s")
        joined = parts[0] + second  # a noun that is also written as one: check-in, add-on
        is_noun = second in _PARTICLES and (joined in words.nouns or joined in words.lists["phrasal"])
        if is_noun or parts[:2] == ["to", "do"]:
            parts[:2] = ["".join(parts[:2])]
    if len(parts) == 1:
        return _alone(parts[0], method, words)
    return _several(parts, segment[0].islower() and segment.isalpha(), method, words)


def _alone(word: str, method: str, words: Lexicon) -> SegmentVerdict | None:
    if word == method:
        return SegmentVerdict("error", word, "method", _noun(word, words))
    if is_plain_verb(word, words):
        return SegmentVerdict(_tier(word, words), word, "alone", _noun(word, words))
    if word in words.paths["alone"]:
        return SegmentVerdict("warning", word, "alone", _noun(word, words))
    form = classify(word)
    if form.kind == "inflected" and form.base is not None:
        return _inflected(word, form.base, form.inflection, words)
    if form.kind != "compound" or form.base is None:
        return None
    if form.base == method:
        return SegmentVerdict("error", method, "method", form.rest)
    listed = form.base in {"list", "register"} and word.endswith(("s", "ion"))
    if listed or _is_action(form.base, words):
        return SegmentVerdict("warning", form.base, "joined", form.rest)
    return None


def _inflected(word: str, base: str, inflection: Inflection, words: Lexicon) -> SegmentVerdict | None:
    """Judge a lone form of a verb: finds, found, confirming; but not orders, left or booking, which name things."""
    if inflection == "third person":
        verb = _third_person(word, words)
        return SegmentVerdict("error", verb, "form", _noun(verb, words)) if verb else None
    if inflection == "present participle":
        return SegmentVerdict(tier, base, "form", _noun(base, words)) if (tier := _doing(word, base, words)) else None
    return SegmentVerdict(tier, base, "past") if (tier := _past(word, base, words)) else None


def _past(word: str, base: str, words: Lexicon) -> Tier | None:
    """Judge a past form without a noun behind it. A mere adjective (related) may be what people call the things."""
    if len(word) < 4 or words.share(word)[1] >= _PROTECTED:
        return None
    return "warning" if word in words.others and not _is_method(base, words) else _tier(base, words)


def _doing(word: str, base: str, words: Lexicon) -> Tier | None:
    """Judge a lone form in -ing: many are nouns (booking), or come from a noun that became a verb (hosting)."""
    paths = words.paths
    likely = base in paths["thirds"] or base in paths["alone"] or base in paths["tails"]
    if word in _THINGS or (word in words.nouns and base not in _METHODS_OF_ALL):
        return "warning" if likely and word not in _THINGS else None
    if base in paths["sure"] or (words.counts(base).verb >= _SEEN and is_plain_verb(base, words)):
        return "error" if _is_method(base, words) else "warning"
    made = base.startswith(_VERB_PREFIXES) or base.endswith(MAKERS)
    seen = words.counts(base).verb >= _SEEN and words.share(base)[0] > _VERB_SHARE
    return "warning" if made or likely or seen or base in paths["usual"] else None


def _gerund(word: str, base: str, words: Lexicon) -> Tier | None:
    """Judge a form in -ing before a noun: sending-mail, but not shipping-address."""
    tier = _doing(word, base, words) if _is_action(base, words) else None
    if tier is None or base in words.paths["sure"]:
        return tier
    # With what follows, an adjective makes a noun phrase: existing-customers. Others may: migrating-machines.
    return "warning" if word not in words.others or _is_method(base, words) else None


def _is_method(verb: str, words: Lexicon) -> bool:
    return verb in words.lists["methods"] or verb in words.paths["sure"]


def _tier(verb: str, words: Lexicon) -> Tier:
    """Return "warning" for a verb that contracts do not use: it may be the name of a thing (grok, interconnect)."""
    return "error" if _is_method(verb, words) or verb in meanings().hand else "warning"


def _is_action(verb: str, words: Lexicon) -> bool:
    return verb in words.paths["sure"] or is_plain_verb(verb, words)


def _several(parts: list[str], camel: bool, method: str, words: Lexicon) -> SegmentVerdict | None:
    first, last = parts[0], parts[-1]
    rest = "-".join(parts[1:])
    if first in _QUESTIONS:
        return SegmentVerdict("error", first, "question")
    if first == method:
        return SegmentVerdict("error", first, "method", rest)
    if first == "to" and _is_command(parts[1], method, words):
        return SegmentVerdict("error", parts[1], "infinitive", "-".join(parts[2:]) or _noun(parts[1], words))
    joined = "".join(parts)  # two words that are also written as one noun: showRoom, book-mark
    names = (joined, singular(joined))
    if len(parts) == 2 and any(word in words.nouns or words.share(word)[1] > 0 for word in names):
        return None
    # Without the verb, /bulk-delete names nothing.
    start = None if first in MANNERS and len(parts) == 2 else "-".join(parts[:-1])
    if start is None and _is_command(last, method, words) and last not in words.paths["usual"]:
        return SegmentVerdict("error" if _is_action(last, words) else "warning", last, "last")
    if start is None and first in MANY and last in words.paths["tails"]:
        return SegmentVerdict("warning", last, "last")
    # A form in -ing makes a name; a past form does so before its object: created-order.
    closing = None if parts[-2] in ("and", "or") else _form(last, words, before=False)
    if closing and not _is_action(first, words):
        return SegmentVerdict(*closing, "last form", start)
    if tier := _leading(parts, camel, words):
        return SegmentVerdict(tier, first, "first", rest)
    if last not in words.paths["heads"] and (leading := _form(first, words, before=True)):
        return SegmentVerdict(*leading, "first form", rest)
    if first in MANNERS and len(parts) > 2 and (tier := _leading(parts[1:], camel, words)):
        return SegmentVerdict(tier, parts[1], "inside", "-".join(parts[2:]))
    if is_plain_verb(last, words):
        return SegmentVerdict(_tier(last, words), last, "last", start)
    return _inside(parts, method, words)


def _inside(parts: list[str], method: str, words: Lexicon) -> SegmentVerdict | None:
    if parts[-1] in words.paths["heads"]:
        return None
    for before, word in pairwise(parts):
        infinitive = before == "to" and _is_command(word, method, words)
        if infinitive or (word is not parts[-1] and is_plain_verb(word, words)):
            return SegmentVerdict("warning", word, "inside")
    return None


def _is_command(word: str, method: str, words: Lexicon) -> bool:
    """Return True if a word behind "to" is a verb: to-book, but not to-address, the recipient of a letter."""
    paths = words.paths
    return word == method or _is_action(word, words) or word in paths["usual"] or word in paths["alone"]


def _form(word: str, words: Lexicon, *, before: bool) -> tuple[Tier, str] | None:
    """Judge a form of a verb beside its object: one in -ing counts only before it, a past form only behind it."""
    form = classify(word)
    if form.kind != "inflected" or form.base is None:
        return None
    if form.inflection == "third person":
        verb = _third_person(word, words)
        return ("error", verb) if verb else None
    if before != (form.inflection == "present participle"):
        return None
    tier = (_gerund if before else _past)(word, form.base, words)
    return (tier, form.base) if tier else None


def _leading(parts: list[str], camel: bool, words: Lexicon) -> Tier | None:
    """Return True if the first word is a verb and the others are its object."""
    paths, first, last = words.paths, parts[0], parts[-1]
    if first in paths["strict"]:
        return "error"
    head = last in paths["heads"]
    usual = first in paths["usual"]
    if first in paths["sure"] or (not usual and is_plain_verb(first, words)):
        if head:
            return "warning" if len(parts) > 2 else None
        return "warning" if last in paths["holders"] and first not in paths["sure"] else _tier(first, words)
    if not usual:
        return None
    call = first in paths["calls"]
    if head or last in paths["holders"]:
        surely = not head and words.share(first)[0] >= _SURELY and first not in paths["things"]
        if camel and head and first in _SETTERS:
            return "warning"
        many = first == "list" and is_plural(last) and not head
        return "warning" if many or (call and surely) or (len(parts) > 2 and (call or first in _COMMANDS)) else None
    return "error" if call and camel and _repeats(first, last) else "warning"


def _repeats(verb: str, noun: str) -> bool:
    """Return True if a noun names the action of the verb before it: bookReservation, but not bookShop."""
    known = meanings()
    named = known.verb_of(noun)
    return named is not None and (named == verb or known.synonymous(verb, named))


def is_plain_verb(word: str, words: Lexicon) -> bool:
    """Return True if a word is hardly ever anything but a base form; things of APIs are excluded."""
    if word in words.paths["things"]:
        return False
    if word not in words.verbs:
        return word.startswith(_VERB_PREFIXES) and classify(word).kind == "base"
    counts = words.counts(word)
    if not (total := sum(counts)):
        return word not in words.nouns
    return counts.noun < _NOUN_SHARE * total and counts.adjective < _ADJECTIVE_SHARE * total


def _third_person(word: str, words: Lexicon) -> str | None:
    """Return the verb of a third person that cannot be a plural: exists, finds; but edits, installs and moves can."""
    return next((verb for verb, form in lemmas(word) if form == "third" and verb in words.paths["thirds"]), None)


def _noun(verb: str, words: Lexicon) -> str | None:
    """Return a noun for the action of a verb: validate gives validation."""
    made = (verb.removesuffix(end) + ending for end, ending in _ENDINGS if verb.endswith(end))
    return None if verb in _METHODS_OF_ALL else next((noun for noun in made if noun in words.nouns), None)
