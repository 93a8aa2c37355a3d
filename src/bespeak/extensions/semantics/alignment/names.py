"""Names of terms as the aligner compares them: weighted sets of words in one spelling, in the singular."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final

import msgspec

from bespeak.extensions.semantics.terms import Term

MOST_WORDS: Final = 24  # most words of a name; the others are left out
_WORD: Final = re.compile(
    # Numbers with their endings, acronyms also in the plural, and words in camel case.
    r"[0-9]+(?:st|nd|rd|th)?(?![a-z])|[0-9]+|[A-Z]{2,}(?=s(?![a-z]))|[A-Z]+(?=[A-Z][a-z])"
    r"|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+"
)
STOP_WORDS: Final = frozenset(("a", "an", "the", "of", "and", "for", "in", "to", "by", "on", "at", "with", "s"))
PROPERTY_WORDS: Final = frozenset(("has", "have", "had", "is", "are", "was", "were", "be", "been", "does", "do"))
"""Words that begin the names of properties and say nothing about them."""


def _pairs(text: str) -> dict[str, str]:
    """Return a table that is written as `word form, word form`."""
    return dict(part.split() for part in text.split(", "))


_FORMS: Final[Mapping[str, str]] = {
    **_pairs("i 1, ii 2, iii 3, iv 4, v 5, vi 6, vii 7, viii 8, ix 9, x 10, xi 11, xii 12"),
    **_pairs("one 1, two 2, three 3, four 4, five 5, six 6, seven 7, eight 8, nine 9, ten 10"),
    **_pairs("first 1, second 2, third 3, fourth 4, fifth 5, sixth 6, seventh 7, eighth 8, ninth 9, tenth 10"),
    **_pairs("eleven 11, twelve 12, eleventh 11, twelfth 12"),
    # Irregular plurals, and words that only look like plurals.
    **_pairs("teeth tooth, feet foot, men man, women woman, children child, people person, persons person, mice mouse"),
    **_pairs("axes axis, indices index, cortices cortex, appendices appendix, matrices matrix, testes testis"),
    **_pairs("lenses lens, lens lens, series series, species species, semi semi, mini mini, multi multi, anti anti"),
    **_pairs("programme program, grey gray, licence license, catalogue catalog, cheque check, mould mold"),
    # Short forms.
    **_pairs("exam examination, info information, doc document, org organization, dept department, max maximum"),
    **_pairs("spec specification, id identifier, num number, nr number, addr address, tel telephone, min minimum"),
    **_pairs("phone telephone, qty quantity, desc description, lang language, ref reference, conf conference"),
    **_pairs("univ university, img image, msg message, config configuration, app application, prof professor"),
    **_pairs("lab laboratory, mgmt management, std standard, photo photograph, temp temperature"),
}
# British spellings, as a whole or at the end of a word; both sides are changed, so a wrong change does no harm.
_SPELLING: Final = (
    (re.compile(r"(?<=.)(?:ae|oe)(?=[a-z]{2})|^(?:ae|oe)(?=[a-z]{4})"), "e"),
    (re.compile(r"(?<=[a-z]{2})our(?=$|al|ed|ing|er|s$|it)"), "or"),
    (re.compile(r"(?<=[a-z]{2}[tb])re$"), "er"),
    (re.compile(r"(?<=[a-z]{3})is(?=e$|es$|ed$|er$|ing$|ation)"), "iz"),
    (re.compile(r"(?<=[a-z]{3})ys(?=e$|es$|ed$|er$|ing$)"), "yz"),
    (re.compile(r"(?<=[a-z]{2})ll(?=ed$|ing$)"), "l"),
)
_PLURALS: Final = (
    (re.compile(r"(?<=[a-z]{3})men$"), "man"),
    (re.compile(r"(?<=[a-z]{2})ies$"), "y"),
    (re.compile(r"(?<=[a-z]{2}(?:ss|sh|ch))es$|(?<=[a-z]{2}[xz])es$"), ""),
    (re.compile(r"(?<=[a-z]{3})ae$"), "a"),
    (re.compile(r"(?<=[a-z]{3})i$"), "us"),
    (re.compile(r"(?<=[a-z]{2}[^sui])s$"), ""),
)
_OPPOSITES: Final = _pairs(
    "left right, upper lower, superior inferior, anterior posterior, internal external, inner outer, dorsal ventral, "
    "medial lateral, proximal distal, ascending descending, male female, major minor, deep superficial, old new, "
    "cranial caudal, afferent efferent, maximum minimum, start end, begin end, early late, accepted rejected, "
    "accept reject, acceptance rejection, source target, input output, buyer seller, before after, public private, "
    "sender receiver, long short, parent child, maxillary mandibular, hind fore"
)
OPPOSITES: Final = frozenset((*_OPPOSITES.items(), *((other, one) for one, other in _OPPOSITES.items())))
"""Pairs of words that make two similar names different."""


# Endings of nouns and of their adjectives, most of them Latin.
_NOUNS: Final = frozenset(("", "a", "e", "ex", "ia", "is", "ium", "ix", "le", "on", "um", "us", "x", "y"))
_ADJECTIVES: Final = frozenset(
    ("al", "ar", "ary", "cal", "cic", "eal", "geal", "ial", "ian", "ic", "ical", "ine", "ous", "ular")
)
_SHORTEST_STEM: Final = 4
_LONGEST_ENDING: Final = 4
_ACTIONS: Final = ("", "e", "ion", "ation", "ing")
_ACTORS: Final = ("er", "or", "ee", "ist", "ant", "ship", "less")


def split_words(text: str) -> list[str]:
    """Split a label or a local name at spaces, punctuation, digits and capital letters; letters lose their accents."""
    if not text.isascii():
        text = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return _WORD.findall(text)[: 2 * MOST_WORDS]


@lru_cache(maxsize=50_000)
def normalize(word: str) -> str:
    word = word.lower()
    if word in _FORMS:
        return _FORMS[word]
    if word[0].isdecimal():
        return word.rstrip("stndrh").lstrip("0") or "0"
    if len(word) > 3 and word.isascii():
        singular = next((form for pattern, end in _PLURALS if (form := pattern.sub(end, word)) != word), word)
        for pattern, end in _SPELLING:
            singular = pattern.sub(end, singular)
        return _FORMS.get(singular, singular)
    return word


def is_derived(one: str, other: str) -> bool:
    """Return True for a noun and its adjective, such as cranium and cranial."""
    if f"{one}r" == other or f"{other}r" == one:  # ulna, ulnar
        return min(one, other, key=len).endswith("a")
    shortest = max(_SHORTEST_STEM, len(one) - _LONGEST_ENDING, len(other) - _LONGEST_ENDING)
    return any(
        one[:length] == other[:length]
        and (
            (one[length:] in _NOUNS and other[length:] in _ADJECTIVES)
            or (one[length:] in _ADJECTIVES and other[length:] in _NOUNS)
        )
        for length in range(shortest, min(len(one), len(other)) + 1)
    )


def is_actor(one: str, other: str) -> bool:
    """Return True if one word names who does what the other says: a reviewer is not a review."""
    for actor, action in ((one, other), (other, one)):
        stems = {action.removesuffix(end) for end in _ACTIONS}
        if any(actor.endswith(end) and actor.removesuffix(end) in stems for end in _ACTORS):
            return True
    return False


def words_of(text: str, stop: frozenset[str] = STOP_WORDS) -> tuple[str, ...]:
    """Return the normalized words of a name in their order, without stop words unless there are only such."""
    words = split_words(text)
    kept = kept_words(words, stop) or words
    return tuple(normalize(word) for word in kept[:MOST_WORDS])


def kept_words(words: Sequence[str], stop: frozenset[str]) -> list[str]:
    """Return words without stop words. A capital letter is a name, as in hepatitis A, unless it comes first."""
    return [
        word
        for place, word in enumerate(words)
        if word.lower() not in stop or (len(word) == 1 and word.isupper() and (place or word != "A"))
    ]


MOST_NAMES: Final = 24  # most names of one term that are compared; labels come first

# A label wins over a synonym if both fit.
_WEIGHTS: Final = {"exact": 0.998, "related": 0.995, "hidden": 0.95, "broad": 0.75, "narrow": 0.75}
# An abbreviation has several meanings ("LLM" is a model here and a degree there): alone it only raises a question.
_ABBREVIATION: Final = 0.7


class Name(msgspec.Struct, frozen=True):
    text: str
    words: tuple[str, ...]  # normalized words in their order
    weight: float
    key: frozenset[str]  # words without their order


def make_name(text: str, words: Sequence[str], weight: float = 1.0) -> Name:
    kept = tuple(words[:MOST_WORDS])
    return Name(text, kept, weight, frozenset(kept))


def names_of(term: Term, acronyms: Acronyms, around: Iterable[str] = ()) -> list[Name]:
    """Return the names of a term: labels, else the local name; synonyms; abbreviations; expanded acronyms.

    The name of a property may repeat words `around` it: `writePaper` says the same as `write` with the range Paper.
    """
    stop = STOP_WORDS | PROPERTY_WORDS if term.kind.endswith("property") else STOP_WORDS
    texts = [(label, 1.0) for label in term.labels or (term.local_name,)]
    texts += [(one.text, _WEIGHTS[one.scope]) for one in term.synonyms]
    texts += [(text, _ABBREVIATION) for text in term.abbreviations]
    found: dict[frozenset[str], Name] = {}
    for text, weight in texts[:MOST_NAMES]:
        for name in (make_name(text, words_of(text, stop), weight), *acronyms.expand(text, weight, stop)):
            if name.words and found.get(name.key, name).weight <= name.weight:
                found[name.key] = name
    repeated = frozenset(around)
    for name in list(found.values()) if repeated else ():
        rest = tuple(word for word in name.words if word not in repeated)
        if rest and len(rest) < len(name.words):
            found.setdefault(frozenset(rest), make_name(name.text, rest, name.weight * 0.93))
    return list(found.values())[:MOST_NAMES]


class Acronyms:
    """What acronyms in names stand for: words of other names with these initials, such as `PC` in `PCMember`."""

    def __init__(self, texts: Iterable[str]) -> None:
        split = [split_words(text) for text in texts]
        wanted = {word for words in split for word in words if _is_acronym(word)}
        counts: dict[str, Counter[tuple[str, ...]]] = {}
        lengths = sorted({len(word) for word in wanted})
        for words in split if wanted else ():
            for length in lengths:
                for start in range(len(words) - length + 1):
                    part = words[start : start + length]
                    initials = "".join(word[0] for word in part).upper()
                    if initials in wanted and all(len(word) > 1 and not _is_acronym(word) for word in part):
                        counts.setdefault(initials, Counter())[tuple(normalize(word) for word in part)] += 1
        # An acronym is left as it is, unless one reading is clearly more frequent.
        best = ((acronym, found.most_common(2)) for acronym, found in counts.items())
        self._known = {one: first for one, ((first, count), *rest) in best if not rest or count >= 2 * rest[0][1]}

    def expand(self, text: str, weight: float, stop: frozenset[str]) -> Sequence[Name]:
        if not self._known:
            return ()
        words = split_words(text)
        if not any(word in self._known for word in words):
            return ()
        kept = kept_words(words, stop)
        full = [part for word in kept for part in self._known.get(word, (normalize(word),))]
        return (make_name(text, full, weight * 0.97),)


def _is_acronym(word: str) -> bool:
    return 2 <= len(word) <= 5 and word.isupper()


_MOST_PAIRS: Final = 66  # most pairs of names of one term: twelve names

WordSynonyms = dict[str, dict[str, float]]  # similarity of two words, in both directions


def mine_synonyms(terms: Iterable[Sequence[Name]]) -> WordSynonyms:
    """Return words that replace each other in names of one term: `renal vein` is also called `kidney vein`.

    Names of one word each state the synonym directly; other names differ in exactly one word.
    """
    seen: Counter[tuple[str, str]] = Counter()
    alone: set[tuple[str, str]] = set()
    for names in terms:
        for one, other in list(combinations([name.key for name in names], 2))[:_MOST_PAIRS]:
            if len(one) != len(other) or len(one - other) != 1:
                continue
            (left,), (right,) = one - other, other - one
            if left[0].isdecimal() or right[0].isdecimal() or (left, right) in OPPOSITES:
                continue
            pair = (min(left, right), max(left, right))
            seen[pair] += 1
            if len(one) == 1:
                alone.add(pair)
    found: WordSynonyms = {}
    for (left, right), count in seen.items():
        value = 0.92 if (left, right) in alone else 0.9 if count > 1 else 0.8
        found.setdefault(left, {})[right] = value
        found.setdefault(right, {})[left] = value
    return found
