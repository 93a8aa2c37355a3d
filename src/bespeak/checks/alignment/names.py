"""Names of terms as the aligner compares them: sets of words, with a weight for how close the name is to the term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from bespeak.checks.alignment.words import MOST_WORDS, PROPERTY_WORDS, STOP_WORDS, normalize, split_words, words_of
from bespeak.contract.ontology.term import Scope, Term

MOST_NAMES: Final = 24
"""Most names of one term that are compared; labels come first."""

# A label wins over a synonym if both fit.
_WEIGHTS: Final[Mapping[Scope, float]] = {
    "exact": 0.998,
    "related": 0.995,
    "hidden": 0.95,
    "broad": 0.75,
    "narrow": 0.75,
}
# An abbreviation has several meanings ("LLM" is a model here and a degree there): alone it only raises a question.
_ABBREVIATION: Final = 0.7
_EXPANDED: Final = 0.97
_WITHOUT_CLASS: Final = 0.93
_LONGEST_ACRONYM: Final = 5


class Name(msgspec.Struct, frozen=True):
    """One name."""

    text: str
    words: tuple[str, ...]
    """Normalized words in their order."""
    weight: float
    key: frozenset[str]
    """Words without their order."""


def make_name(text: str, words: Sequence[str], weight: float = 1.0) -> Name:
    """Return a name with its normalized words."""
    kept = tuple(words[:MOST_WORDS])
    return Name(text, kept, weight, frozenset(kept))


def names_of(term: Term, acronyms: Acronyms, around: Iterable[str] = ()) -> list[Name]:
    """Return the names of a term: labels, else the local name; synonyms; abbreviations; expanded acronyms.

    `around` are words of the domains and ranges of a property, which its name may repeat: `writePaper` says the same
    as `write` with the range Paper.
    """
    is_property = term.kind.endswith("property")
    stop = STOP_WORDS | PROPERTY_WORDS if is_property else STOP_WORDS
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
            found.setdefault(frozenset(rest), make_name(name.text, rest, name.weight * _WITHOUT_CLASS))
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
        self._known = {
            acronym: first for acronym, ((first, count), *other) in best if not other or count >= 2 * other[0][1]
        }

    def expand(self, text: str, weight: float, stop: frozenset[str]) -> Sequence[Name]:
        """Return the name with its acronyms written in full, or nothing."""
        if not self._known:
            return ()
        words = split_words(text)
        if not any(word in self._known for word in words):
            return ()
        kept = [word for word in words if word.lower() not in stop]
        full = [part for word in kept for part in self._known.get(word, (normalize(word),))]
        return (make_name(text, full, weight * _EXPANDED),)


def _is_acronym(word: str) -> bool:
    return 2 <= len(word) <= _LONGEST_ACRONYM and word.isupper()
