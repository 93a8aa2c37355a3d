"""The word lists behind every judgement about English: which words are verbs, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.text.language.data_file import read_data

FORMAT: Final = "bespeak verbs 1"


class Counts(NamedTuple):
    """How often a word occurs as each part of speech, in quarters: four per use in SemCor, one per sense."""

    verb: int
    noun: int
    adjective: int


_UNSEEN: Final = Counts(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The verbs of English with the facts that contracts need; every word is in lower case."""

    sources: tuple[str, ...]
    """Sources of the file: a name and a hash each."""
    verbs: Mapping[str, tuple[str, str, str]]
    """Verbs with their unparsed counts: a run needs only a few of the thousands."""
    irregular: Mapping[str, tuple[tuple[str, str], ...]]
    """Irregular forms: went is (go, past), and found is both parts of find."""
    strong: frozenset[str]
    """Verbs whose past is never regular: seed is not a form of see."""
    nouns: frozenset[str]
    """Nouns that are not verbs; rare ones only where a rule could mistake them for a verb."""
    others: frozenset[str]
    """Adjectives that are neither, and adverbs that a rule could mistake for a verb."""
    intents: Mapping[str, str]
    """Words that are not plain actions, or are despite their look, with their group."""
    instead: Mapping[str, tuple[str, ...]]
    """Suggested verbs for a word that is not a good method."""
    paths: Mapping[str, frozenset[str]]
    """Ambiguous words in paths, by group."""
    lists: Mapping[str, frozenset[str]]
    """Other hand-written lists by name; "methods" are the verbs of the AGTP catalog and of our own list."""

    def counts(self, word: str) -> Counts:
        """Count how often a word is verb, noun and adjective; a noun that is not a verb counts once."""
        found = self.verbs.get(word)
        if found is None:
            return Counts(0, 4, 0) if word in self.nouns else _UNSEEN
        return Counts(*map(int, found))

    def share(self, word: str) -> tuple[float, float, float]:
        """Return the shares of verb, noun and adjective among the uses of a word; zeros without counts."""
        counts = self.counts(word)
        total = sum(counts) or 1
        return counts.verb / total, counts.noun / total, counts.adjective / total


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """Load the lexicon once."""
    return _parse(read_data("verbs.txt.gz"))


def _parse(text: str) -> Lexicon:
    head, *sections = text.split("\n\n")
    title, *sources = head.split("\n")
    assert title == FORMAT
    named = dict(section.split("\n", 1) for section in sections)
    words = named.pop("verbs").split()
    numbers = iter(named.pop("counts").split())
    irregular: dict[str, tuple[tuple[str, str], ...]] = {}
    for written, verb, form in _rows(named.pop("irregular")):
        irregular[written] = (*irregular.get(written, ()), (verb, form))
    return Lexicon(
        sources=tuple(sources),
        verbs=dict(zip(words, zip(numbers, numbers, numbers, strict=True), strict=True)),
        irregular=irregular,
        strong=frozenset(named.pop("strong").split()),
        nouns=frozenset(named.pop("nouns").split()),
        others=frozenset(named.pop("others").split()),
        intents={word: group for group, *members in _rows(named.pop("intents")) for word in members},
        instead={word: tuple(verbs) for word, *verbs in _rows(named.pop("instead"))},
        paths=_groups(named.pop("paths")),
        lists={name: frozenset(section.split()) for name, section in named.items()},
    )


def _rows(section: str) -> list[list[str]]:
    return [line.split() for line in section.split("\n")]


def _groups(section: str) -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for group, *members in _rows(section):
        groups[group] = groups.get(group, frozenset()).union(members)
    return groups
