"""Meanings of verbs, as far as contracts need them: shared senses, opposites, and nouns of action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bespeak.text.language.data_file import read_data
from bespeak.text.language.sentence import word_set

FORMAT: Final = "bespeak meanings 1"

_UNDOING: Final = ("un", "de", "dis", "off")
_DOING: Final = ("", "on", "en")
"""Prefix pairs: offboard is the opposite of onboard, disengage of engage."""
NOT_UNDOING: Final = word_set(
    "uncover declaim defile define delay denominate deposit derive describe design detail detest devote disappoint "
    "discard discharge disclose discount discover dislocate dispatch displace display dispose dissolve distrain "
    "offend offset"
)
"""Verbs that only look like opposites: discover has nothing to do with cover."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """The tables of the data file; a cell is parsed on demand, because most are never used."""

    sources: tuple[str, ...]
    """Sources of the file: a name and a hash each."""
    hand: Mapping[str, str]
    """Verbs with hand-assigned operation classes: letters of the classes, each with its weight in tenths."""
    table: Mapping[str, str]
    """Verbs with classes from their neighbours; the last digit says how much these agree."""
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
        """Return the verb of a noun of action, in singular or plural: cancellation gives cancel."""
        found = self.nouns.get(noun)
        if found is None and noun.endswith("s"):
            found = self.nouns.get(noun[:-1])
        return found


def _undoes(one: str, other: str) -> bool:
    return one not in NOT_UNDOING and any(
        one.startswith(un) and one[len(un) :] in (other, *_bare(other)) for un in _UNDOING
    )


def _bare(verb: str) -> tuple[str, ...]:
    return tuple(verb[len(prefix) :] for prefix in _DOING if prefix and verb.startswith(prefix))


@lru_cache(maxsize=1)
def meanings() -> Meanings:
    """Load the meanings once."""
    head, *sections = read_data("meanings.txt.gz").split("\n\n")
    title, *sources = head.split("\n")
    assert title == FORMAT
    named = dict(section.split("\n", 1) for section in sections)
    tables = {name: dict(line.split(" ", 1) for line in text.split("\n")) for name, text in named.items()}
    return Meanings(tuple(sources), **tables)
