"""Vocabulary of a service: the nouns that its paths and fields use, and how a field name is read with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from bespeak.runtime.negotiation.planner.resource import LINKS, segments_of
from bespeak.runtime.negotiation.planner.slot import ITEM, Facts, Slot
from bespeak.runtime.negotiation.planner.term import GENERIC, POSITIONS, WRAPPERS, join, noun_of, stems

_COMMON: Final = 0.3
"""Share of endpoints from which a segment says nothing about one of them."""
_ROLES: Final = 20_000
"""Most nouns whose role is remembered, since proposals invent them."""
_LINKING: Final = frozenset(("link", "ref", "relationship"))
"""Objects whose members are named by what they refer to."""
_KEPT_IN: Final = frozenset(("document", "entry", "list", "member", "node", "object", "page", "record"))
"""Wrappers that are often things."""
_COUNTS: Final = frozenset(("count", "max", "min", "n", "nb", "num", "number", "total"))
"""Words before a noun that make a number of it: `nb_tracks` is not the key of a track."""
_FEW: Final = 10
"""Endpoints below which no segment is common."""


class Reading(NamedTuple):
    """What a name may mean: an attribute of a noun."""

    noun: str
    attribute: str


class Vocabulary:
    """Nouns of a service."""

    def __init__(self, endpoints: Iterable[tuple[str, Sequence[Slot], Sequence[Slot]]]) -> None:
        self.things: set[str] = set()
        """Nouns with ids: before a path parameter, or the stem of `x_id`."""
        self.segments: set[str] = set()
        """Literals of paths."""
        self.nouns: set[str] = set()
        """Everything that may be the noun of a field."""
        counts: Counter[str] = Counter()
        total = 0
        for path, inputs, outputs in endpoints:
            segments = segments_of(path)
            total += 1
            counts.update({segment.term for segment in segments if not segment.is_silent})
            for before, segment in pairwise(segments):
                if segment.parameter and not before.is_silent and not before.parameter:
                    self.things.add(noun_of(before.stems))
            named = [segment for segment in segments if not segment.is_silent]
            self.nouns |= {
                noun_of(one.stems) for at, one in enumerate(named) if at == 0 or one.is_plural or one.is_keyed
            }
            last = segments[-1] if len(segments) > 1 and segments[-2].parameter else None
            if last is not None and not last.is_silent and not last.is_quality:
                self.nouns.add(noun_of(last.stems))
            for slot in (*inputs, *outputs):
                self._learn(slot)
        self.segments |= set(counts)
        self.resources = frozenset(self.nouns)
        """Nouns of paths and lists: an id alone, as `short_id`, does not make `short_url` the url of a short."""
        self.nouns |= self.things
        self.wrappers = WRAPPERS - (self.things & _KEPT_IN)
        """Containers that say nothing here: `lists` are things for a service that has lists."""
        self.common = {term for term, count in counts.items() if total >= _FEW and count > _COMMON * total}
        """Segments of so many endpoints that they distinguish none."""
        self._roles: dict[str, str] = {}

    def _learn(self, slot: Slot) -> None:
        parts = stems(slot.path[-1])
        if len(parts) > 1 and parts[-1] == "id" and join(parts[:-1]) not in GENERIC:
            self.things.add(join(parts[:-1]))
        elif slot.item is not None and slot.is_container and join(parts) not in WRAPPERS:
            self.nouns.add(noun_of(parts))

    def knows(self, term: str) -> bool:
        """Return True if the service uses a term for a thing or a segment."""
        return term in self.segments or term in self.nouns

    def is_role(self, noun: str) -> str:
        """Return the thing that a compound noun is a role of, such as `account` for `from_account`; else ''."""
        found = self._roles.get(noun)
        if found is None:
            parts = tuple(noun.split("_"))
            parts = () if noun in self.segments or parts[0] in _COUNTS else parts
            tails = (join(parts[at:]) for at in range(1, len(parts)) if at == 1 or parts[at - 1] not in LINKS)
            found = next((tail for tail in tails if tail in self.things), "")
            if len(self._roles) < _ROLES:
                self._roles[noun] = found
        return found

    def prefix(self, parts: tuple[str, ...]) -> int:
        """Return how many of the first words are a known noun; 0 if none, and never all."""
        return next((end for end in range(len(parts) - 1, 0, -1) if join(parts[:end]) in self.resources), 0)

    def container(self, name: str, *, is_list: bool) -> str | None:
        """Return the noun that a container names; None if its members belong to what is around it."""
        parts = stems(name)
        noun = noun_of(parts)
        if noun in self.wrappers:
            return None
        return noun if is_list or noun in self.things or self.is_role(noun) else None

    def row_noun(self, path: tuple[str, ...]) -> str | None:
        """Return the noun of a list by its path: that of its name, or of the nearest name that is not a wrapper."""
        named = (self.container(name, is_list=True) for name in reversed(path) if name != ITEM)
        return next((noun for noun in named if noun is not None), None)

    def row_nouns(self, names: Sequence[str]) -> list[str]:
        """Return the things that names of definitions end with: `SimplifiedTrack` is a track."""
        found = []
        for name in names:
            parts = stems(name)
            tails = (join(parts[at:]) for at in range(len(parts)))
            found += [tail for tail in tails if tail in self.things][:1]
        return found

    def read(self, path: tuple[str, ...], bases: Sequence[str], facts: Facts) -> tuple[Reading, ...]:
        """Return what a field may mean; `bases` are the nouns of the object at the root of the path."""
        nouns = list(bases)
        before: tuple[str, ...] = ()
        for at, name in enumerate(path[:-1]):
            if name == ITEM:
                continue
            noun = self.container(name, is_list=path[at + 1] == ITEM)
            if noun is not None:
                # What a proposal calls by a name of its own may be what it is about.
                own = path[at + 1] != ITEM or noun in self.nouns
                nouns, before = [noun] if own else [noun, *nouns], ()
            elif stems(name) and noun_of(stems(name)) not in self.wrappers | _LINKING:
                before = (*before, *stems(name))
        return self.read_name((*before, *stems(path[-1])), nouns, facts)

    def read_name(self, parts: tuple[str, ...], nouns: Sequence[str], facts: Facts) -> tuple[Reading, ...]:
        """Return what the words of a name may mean for an owner of these nouns."""
        if not parts:
            return ()
        found: list[Reading] = []
        if parts[-1] == "id":
            own = join(parts[:-1])
            if own in POSITIONS and own not in self.things:  # the parent of one thing is not that of another
                found += [Reading(noun, join(parts)) for noun in nouns]
            else:
                found += [Reading(own, "id")] if own else [Reading(noun, "id") for noun in nouns]
        else:
            whole = join(parts)
            found += [Reading(noun, whole) for noun in nouns]
            end = self.prefix(parts)
            if end:
                found.append(Reading(join(parts[:end]), join(parts[end:])))
            scalar = facts.kind in ("string", "integer", "") and not facts.members and facts.values is None
            role = self.is_role(whole)  # `menu_order` is a place, not an order
            if scalar and ((whole in self.things and whole not in GENERIC) or (role and role != "order")):
                found.append(Reading(whole, "id"))
        return tuple(dict.fromkeys(found))
