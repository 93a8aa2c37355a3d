"""Fields: slots of inputs and outputs with what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bespeak.documents.adoption.naming import words
from bespeak.runtime.negotiation.planner.slot import ITEM, Facts
from bespeak.runtime.negotiation.planner.term import KEYS, TEXTS, Comparison, comparison, join, other_names, stems
from bespeak.runtime.negotiation.planner.vocabulary import Reading, Vocabulary

_ROLE: Final = 0.85
_SYNONYM: Final = 0.85


@dataclass(frozen=True, eq=False)
class Field:
    """A value that an endpoint takes or yields, or that a proposal gives or wants."""

    path: tuple[str, ...]
    readings: tuple[Reading, ...]
    facts: Facts
    required: bool = False
    item: Facts | None = None
    """Elements of a list."""
    inner: tuple[Field, ...] = ()
    """Members of a container."""
    is_wanted: bool = False
    """True for a field of a proposed output, which nothing but itself will do for: no role of it, and no other."""

    @property
    def name(self) -> str:
        """Last name of the path."""
        return self.path[-1]

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Words of the name."""
        return stems(self.name)

    @cached_property
    def term(self) -> str:
        """Words of the name as one term."""
        return join(self.stems)

    @cached_property
    def meanings(self) -> frozenset[Reading]:
        """Readings as a set."""
        return frozenset(self.readings)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Attributes that it may be, with their other names."""
        return frozenset(
            name for reading in self.readings for name in (reading.attribute, *other_names(reading.attribute))
        )

    @cached_property
    def comparison(self) -> Comparison | None:
        """What an input compares."""
        return comparison(self.stems, is_time=self.facts.format in ("date", "date-time"))

    @cached_property
    def text(self) -> str:
        """Path for people: `orders[].total`."""
        return ".".join(self.path).replace(f".{ITEM}", ITEM)

    @cached_property
    def dotted(self) -> str:
        """Path in the language of recipes."""
        return ".".join(name for name in self.path if name != ITEM)

    @cached_property
    def lists(self) -> int:
        """Number of lists above the field."""
        return self.path.count(ITEM)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Path of the innermost list above the field."""
        return self.path[: len(self.path) - 1 - self.path[::-1].index(ITEM)] if ITEM in self.path else ()

    @cached_property
    def column(self) -> str:
        """Path inside an element of that list."""
        return ".".join(self.path[len(self.rows) + 1 :]) if self.lists else self.dotted

    @cached_property
    def is_one_of_ids(self) -> bool:
        """True for a member of `ids{...}`: a key of its own, beside others."""
        return bool(self.path[-2:-1]) and stems(self.path[-2]) == ("id",)

    @cached_property
    def identifies(self) -> frozenset[str]:
        """Nouns whose id it is."""
        return frozenset(reading.noun for reading in self.readings if reading.attribute == "id")

    @cached_property
    def is_uuid(self) -> bool:
        """True for a UUID. A thing that has an id besides it has two keys, and one is not the other."""
        return self.facts.format == "uuid" or not {"uuid", "guid"}.isdisjoint(words(self.name))

    @cached_property
    def tells(self) -> frozenset[str]:
        """Nouns of which it tells one from the others, by id or otherwise."""
        return self.identifies.union(reading.noun for reading in self.readings if reading.attribute in KEYS)

    @cached_property
    def texts(self) -> frozenset[str]:
        """Nouns whose name or text it is."""
        return frozenset(reading.noun for reading in self.readings if reading.attribute in TEXTS)

    @cached_property
    def nouns(self) -> frozenset[str]:
        """Nouns that it may belong to."""
        return frozenset(reading.noun for reading in self.readings)


def likeness(need: Field, have: Field, vocabulary: Vocabulary) -> float:
    """Judge whether two fields mean the same, by noun and attribute: 0 if not, 1 if they are read alike."""
    if need.is_wanted and have.is_one_of_ids and need.name != have.name:
        return 0.0  # any of them is a key to send, but none is another
    if not need.meanings.isdisjoint(have.meanings):
        return 1.0 if need.is_uuid == have.is_uuid or not need.identifies & have.identifies else _SYNONYM
    if need.attributes.isdisjoint(have.attributes):
        return 0.0
    best = 0.0
    for noun, attribute in need.readings:
        for other, other_attribute in have.readings:
            if attribute == other_attribute and noun and other:
                role = vocabulary.is_role(noun) == other or vocabulary.is_role(other) == noun
                if (role and not need.is_wanted) or (attribute != "id" and other in other_names(noun)):
                    best = max(best, _ROLE)
            elif noun == other and other_attribute in other_names(attribute):
                best = max(best, _SYNONYM)
    return best


def alternatives(field: Field, vocabulary: Vocabulary) -> list[Reading]:
    """Return the readings under which providers of a field are found, likelier ones first."""
    found = list(field.readings)
    for noun, attribute in field.readings:
        role = vocabulary.is_role(noun)
        found += [Reading(role, attribute)] if role else []
        if attribute != "id":
            found += [Reading(noun, other) for other in other_names(attribute)]
            found += [Reading(other, attribute) for other in other_names(noun)]
    return list(dict.fromkeys(found))
