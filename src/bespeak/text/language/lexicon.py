"""The word lists behind every judgement about English: verbs, their meanings, and words for the same thing."""

from __future__ import annotations

import pkgutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.text.language.sentence import groups, listed

_GZIP: Final = 31  # zlib's code for gzip; the module gzip takes longer to import


def read_data(name: str) -> str:
    """Read a compressed data file of this package."""
    packed = pkgutil.get_data("bespeak.text.language", f"data/{name}")
    assert packed is not None
    return zlib.decompress(packed, wbits=_GZIP).decode("ascii")


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

    sources: tuple[str, ...]  # sources of the file: a name and a hash each
    verbs: Mapping[str, tuple[str, str, str]]  # verbs with unparsed counts: a run needs few of them
    irregular: Mapping[str, tuple[tuple[str, str], ...]]  # went is (go, past); found is both parts of find
    strong: frozenset[str]  # verbs whose past is never regular: seed is not a form of see
    nouns: frozenset[str]  # nouns that are not verbs; rare ones only where a rule could mistake them for a verb
    others: frozenset[str]  # adjectives that are neither, and adverbs that a rule could mistake for a verb
    intents: Mapping[str, str]  # words that are not plain actions, or are despite their look, with their group
    instead: Mapping[str, tuple[str, ...]]  # suggested verbs for a word that is not a good method
    paths: Mapping[str, frozenset[str]]  # ambiguous words in paths, by group
    lists: Mapping[str, frozenset[str]]  # other lists by name; "methods" are those of the catalog and ours

    def counts(self, word: str) -> Counts:
        """Count how often a word is verb, noun and adjective; a noun that is not a verb counts once."""
        if (found := self.verbs.get(word)) is None:
            return Counts(0, 4, 0) if word in self.nouns else _UNSEEN
        return Counts(*map(int, found))

    def share(self, word: str) -> tuple[float, float, float]:
        """Return the shares of verb, noun and adjective among the uses of a word; zeros without counts."""
        counts = self.counts(word)
        total = sum(counts) or 1
        return counts.verb / total, counts.noun / total, counts.adjective / total


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
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


MEANINGS_FORMAT: Final = "bespeak meanings 1"
_UNDOING: Final = ("un", "de", "dis", "off")
NOT_UNDOING: Final = listed("not-undoing")  # verbs that only look like opposites: discover has nothing to do with cover


@dataclass(frozen=True, slots=True)
class Meanings:
    """The tables of the data file; a cell is parsed on demand, because most are never used."""

    sources: tuple[str, ...]  # sources of the file: a name and a hash each
    hand: Mapping[str, str]  # verbs with classes assigned by hand: letters, each with a weight in tenths
    table: Mapping[str, str]  # verbs with classes from their neighbours; the last digit says how much these agree
    senses: Mapping[str, str]
    opposites: Mapping[str, str]
    nouns: Mapping[str, str]

    def synonymous(self, one: str, other: str) -> bool:
        """Return True if two verbs share a usual sense."""
        left = self.senses.get(one)
        right = self.senses.get(other)
        return left is not None and right is not None and not set(left.split()).isdisjoint(right.split())

    def opposite(self, one: str, other: str) -> bool:
        """Return True if one verb undoes or contradicts the other."""
        first, second = (one, other) if one < other else (other, one)
        return second in self.opposites.get(first, "").split() or _undoes(one, other) or _undoes(other, one)

    def verb_of(self, noun: str) -> str | None:
        """Return the verb of a noun of action, in singular or plural: cancellation and discoveries give verbs."""
        singulars = (noun, noun.removesuffix("s"), noun.removesuffix("ies") + "y")
        return next((verb for one in singulars if (verb := self.nouns.get(one))), None)


def _undoes(one: str, other: str) -> bool:
    # Prefixes come in pairs: offboard is the opposite of onboard, disengage of engage.
    bases = (other, other.removeprefix("on"), other.removeprefix("en"))
    return one not in NOT_UNDOING and any(one.startswith(un) and one[len(un) :] in bases for un in _UNDOING)


@lru_cache(maxsize=1)
def meanings() -> Meanings:
    head, *sections = read_data("meanings.txt.gz").split("\n\n")
    title, *sources = head.split("\n")
    assert title == MEANINGS_FORMAT
    named = dict(section.split("\n", 1) for section in sections)
    tables = {name: dict(line.split(" ", 1) for line in text.split("\n")) for name, text in named.items()}
    return Meanings(tuple(sources), **tables)


def _by_word() -> Mapping[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for number, group in enumerate(groups("things")):
        for word in group:
            found[word] = (*found.get(word, ()), number)
    return found


THINGS: Final = _by_word()  # things by word: the numbers of the groups that it belongs to
