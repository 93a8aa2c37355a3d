"""Vocabulary of a service: the nouns of its paths and fields, in singular, and how names are read with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, zip_longest
from typing import Final, NamedTuple

from bespeak.extensions.negotiation.planner.slot import ITEM, Facts, Slot
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.names import is_plural, join, stems, words
from bespeak.text.language.sentence import listed, word_set

COLLECTIVE: Final = word_set("collection data detail entry history info list log profile record")
"""Last words that say how a noun is kept, not what it is: a transaction history holds transactions."""
WRAPPERS: Final = listed("wrapping-names") | {""}
"""Containers that say nothing about what they contain."""
GENERIC: Final = listed("attributes-or-roles")
"""Words that are attributes or roles although an id may follow them: a bare `status` is not a key."""
POSITIONS: Final = word_set("external first last next original parent previous root self source target unique")
"""Words before an id that place a thing among its own kind: `parent_id` of a folder is the id of a folder."""
_CODES: Final = word_set("account_number barcode iban isbn serial_number sku vin")  # of one kind of thing, wherever
KEYS: Final = _CODES | word_set("code email handle key login name number phone reference slug symbol title username")
"""Attributes besides the id that usually tell one thing from the others of its kind."""
SHARED: Final = frozenset(("label", "name", "title"))
"""Keys that two things may have in common, so that a caller may choose by them, and a plan may not."""
SEARCHES: Final = word_set("keyword phrase q query search search_term search_text term text")
"""Inputs that take words to look for."""
TEXTS: Final = SEARCHES | SHARED | {"email", "username"}  # attributes that one can search for as text
_COMPARING_FIRST: Final[Mapping[str, str]] = {
    **dict.fromkeys(("min", "minimum", "since"), "gte"),
    **dict.fromkeys(("max", "maximum", "until"), "lte"),
    "before": "lt",
    "after": "gt",
}
_COMPARING_LAST: Final[Mapping[str, str]] = {
    **_COMPARING_FIRST,
    **{op: op for op in ("gte", "lte", "gt", "lt")},
    "from": "gte",
    "to": "lte",
    **dict.fromkeys(("contain", "like"), "contains"),
}


class ComparedName(NamedTuple):
    """An input that compares: `max_price` is `lte` of `price`."""

    op: str
    attribute: str


@lru_cache(maxsize=16_384)
def noun_of(parts: tuple[str, ...]) -> str:
    """Return the noun that words name, without a last word that only says how it is kept."""
    while len(parts) > 1 and parts[-1] in COLLECTIVE:
        parts = parts[:-1]
    return join(parts)


def comparison(parts: tuple[str, ...], *, is_time: bool = False) -> ComparedName | None:
    """Return what an input compares; None if its name does not say so. `from_x` is a bound only of times."""
    if len(parts) < 2:
        op = _COMPARING_FIRST.get(parts[0]) if parts and is_time else None
        return ComparedName(op, "date") if op else None
    first = _COMPARING_LAST.get(parts[0]) if is_time else _COMPARING_FIRST.get(parts[0])
    if first:
        return ComparedName(first, join(parts[1:]))
    last = _COMPARING_LAST.get(parts[-1])
    return ComparedName(last, join(parts[:-1])) if last else None


_VERSION: Final = re.compile(r"v\d+(?:[._]\d+)*|api|rest", re.ASCII)
_REPEATED: Final = re.compile(r"-\d+$", re.ASCII)  # added by importers to keep routes apart: `/movies-2`
_SEARCHING: Final = frozenset(("all", "data", "directory", "find", "list", "lookup", "query", "search"))
_FORMATS: Final = frozenset(("csv", "geojson", "json"))  # forms of an answer, which has the same things in any
_ACCESS: Final = frozenset(("private", "public", "shared"))
LINKS: Final = frozenset(("and", "by", "for", "from", "in", "of", "on", "the", "to", "with"))
"""Words of a segment that only connect the others."""


@dataclass(frozen=True)
class Segment:
    text: str
    is_keyed: bool = False  # True if it names things that have ids, whatever it is called
    names_key: bool = False  # True if it only says which key follows: `/users/email/{email}`

    @cached_property
    def parameter(self) -> str:
        return self.text[1:-1] if self.text.startswith("{") else ""

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return () if self.parameter else stems(self.text)

    @cached_property
    def term(self) -> str:
        return "_".join(self.stems)

    @cached_property
    def phrases(self) -> tuple[tuple[str, ...], ...]:
        """Words between those that only connect: `orders-by-customer-email` are two phrases."""
        found: list[list[str]] = [[]]
        for word in self.stems:
            if word in LINKS:
                found.append([])
            else:
                found[-1].append(word)
        return tuple(tuple(phrase) for phrase in found if phrase)

    @cached_property
    def is_plural(self) -> bool:
        parts = words(self.text)
        return bool(parts) and is_plural(parts[-1])

    @cached_property
    def is_silent(self) -> bool:
        """True if it names nothing: a version, a format, or that one can search there."""
        if not self.stems or self.names_key or _VERSION.fullmatch(self.text.lower()):
            return True
        return self.term in _SEARCHING | _FORMATS and not self.is_keyed

    @cached_property
    def is_quality(self) -> bool:
        """True if it says which or what of a thing, and is not a thing itself: latest, archived, status."""
        last = self.stems[-1]
        return self.term in _ACCESS or last in GENERIC | COLLECTIVE or last in lexicon().others or last.endswith("ed")


@dataclass(frozen=True)
class PathResource:
    segments: tuple[Segment, ...]
    noun: str  # what the endpoint deals with; empty if no segment names a thing
    parent: str  # noun of the literal before that; empty if there is none
    view: str  # a part or choice of the noun that the last segment names: latest, status; empty for all of it
    owners: tuple[tuple[str, str], ...]  # path parameters, each with the noun that it identifies

    @cached_property
    def literals(self) -> list[Segment]:
        return [segment for segment in self.segments if not segment.is_silent and not segment.parameter]

    @cached_property
    def nouns(self) -> list[str]:
        return [noun_of(segment.stems) for segment in self.literals if segment.term != self.view]

    @property
    def is_collection(self) -> bool:
        """True if the path ends in a literal, so that it may name many things."""
        return bool(self.segments) and not self.segments[-1].parameter


def segments_of(path: str, things: Collection[str] = ()) -> tuple[Segment, ...]:
    """Split a path; `things` are nouns that have ids."""
    parts = [_REPEATED.sub("", part) for part in path.split("/") if part]
    found: list[Segment] = []
    for part, after in zip_longest(parts, parts[1:], fillvalue=""):
        named = stems(part)
        key = stems(after[1:-1]) if after.startswith("{") else ()
        labels = bool(found) and "_".join(named) in KEYS and key[-len(named) :] == named and not part.endswith("s")
        is_keyed = not labels and (bool(key) or noun_of(named) in things)
        found.append(Segment(part, is_keyed, labels))
    return tuple(found)


def resource_of(path: str, things: Collection[str]) -> PathResource:
    """Read a path; `things` are nouns that have ids."""
    segments = segments_of(path, things)
    nouns: list[str] = []
    owners: list[tuple[str, str]] = []
    view = ""
    before: Segment | None = None
    for at, segment in enumerate(segments):
        if segment.parameter:
            paired = any(one.parameter for one in segments[at + 1 : at + 2])  # `/repos/{owner}/{name}`: not yet the id
            owners.append((segment.parameter, nouns[-1] if nouns and not paired else ""))
            view = ""
        elif not segment.is_silent:
            noun = noun_of(segment.stems)
            named = (segment.is_plural and not COLLECTIVE.issuperset(segment.stems)) or noun in things
            named = named or not (nouns or noun in _ACCESS)
            after_key = before is not None and bool(before.parameter)
            if named or not (segment.is_quality or (not after_key and before is not None and not before.is_silent)):
                nouns.append(noun)
                view = ""
            else:
                view = segment.term
        before = segment
    noun, parent = (nouns[-1] if nouns else ""), (nouns[-2] if len(nouns) > 1 else "")
    return PathResource(segments, noun, parent, view, tuple(owners))


_COMMON: Final = 0.3  # share of endpoints from which a segment says nothing about one of them
_ROLES: Final = 20_000  # most nouns whose role is remembered, since proposals invent them
_LINKING: Final = word_set("link reference relationship")
"""Objects whose members are named by what they refer to."""
_KEPT_IN: Final = frozenset(("document", "entry", "list", "member", "node", "object", "page", "record"))
"""Wrappers that are often things."""
_COUNTS: Final = frozenset(("count", "max", "min", "n", "nb", "num", "number", "total"))
"""Words before a noun that make a number of it: `nb_tracks` is not the key of a track."""
_FEW: Final = 10  # endpoints below which no segment is common


class NounReading(NamedTuple):
    """What a name may mean: an attribute of a noun."""

    noun: str
    attribute: str


class ServiceNouns:
    def __init__(self, endpoints: Iterable[tuple[str, Sequence[Slot], Sequence[Slot]]]) -> None:
        self.things: set[str] = set()  # nouns with ids: before a path parameter, or the stem of `x_id`
        self.segments: set[str] = set()  # literals of paths
        self.roles: dict[str, list[str]] = {}  # things that may play a role, such as `agent` for `assignee`
        self.coded: dict[str, str] = {}  # nouns by the code that stands for the id: the `isbn` of a book
        self.nouns: set[str] = set()  # everything that may be the noun of a field
        self._beginnings: set[tuple[str, ...]] = set()  # beginnings of paths, by the terms of their segments
        counts: Counter[str] = Counter()
        total = 0
        for path, inputs, outputs in endpoints:
            segments = segments_of(path)
            terms = tuple(segment.term for segment in segments)
            self._beginnings |= {terms[:end] for end in range(1, len(terms) + 1)}
            total += 1
            counts.update({segment.term for segment in segments if not segment.is_silent})
            for before, segment in pairwise(segments):
                if segment.parameter and not before.is_silent and not before.parameter:
                    self.things.add(noun_of(before.stems))
                    code = join(stems(segment.parameter))
                    if code in _CODES:
                        self.coded.setdefault(code, noun_of(before.stems))
            own = [segment for segment in segments if not segment.is_silent]
            self.nouns |= {noun_of(one.stems) for at, one in enumerate(own) if at == 0 or one.is_plural or one.is_keyed}
            last = segments[-1] if len(segments) > 1 and segments[-2].parameter else None
            if last is not None and not last.is_silent and not last.is_quality:
                self.nouns.add(noun_of(last.stems))
            for slot in (*inputs, *outputs):
                parts = stems(slot.path[-1])
                if len(parts) > 1 and parts[-1] == "id" and join(parts[:-1]) not in GENERIC:
                    self.things.add(join(parts[:-1]))
                elif slot.item is not None and slot.is_container:
                    named = (stems(name) for name in reversed(slot.path) if name != ITEM)
                    named_as = next((noun_of(one) for one in named if join(one) not in WRAPPERS), "")
                    self.nouns |= {named_as} - {""}
        self.segments |= set(counts)
        self.resources = frozenset(self.nouns)
        """Nouns of paths and lists: an id alone, as `short_id`, does not make `short_url` the url of a short."""
        self.nouns |= self.things
        self.solid = {noun.replace("_", ""): noun for noun in sorted(self.nouns)}  # nouns by their letters alone
        self.wrappers = WRAPPERS - (self.things & _KEPT_IN)  # say nothing here, unless they are things of the service
        self.common = {term for term, count in counts.items() if total >= _FEW and count > _COMMON * total}
        """Segments of so many endpoints that they distinguish none."""
        self._roles: dict[str, str] = {}

    def is_silent(self, segment: Segment, resource: PathResource) -> bool:
        """Return True if a segment says nothing: many endpoints have it, and nothing is beside it that lacks it."""
        at = resource.segments.index(segment)
        terms = tuple(one.term for one in resource.segments)
        return segment.term in self.common and (*terms[:at], *terms[at + 1 : at + 2]) not in self._beginnings

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

    def read(self, path: tuple[str, ...], bases: Sequence[str], facts: Facts) -> tuple[NounReading, ...]:
        """Return what a field may mean; `bases` are the nouns of the object at the root of the path."""
        nouns = list(bases)
        before: tuple[str, ...] = ()
        for at, name in enumerate(path[:-1]):
            if name == ITEM:
                continue
            # `lines.items[]` are lines.
            inside = path[at + 1 : at + 3]
            is_list = inside[0] == ITEM or (inside[1:] == (ITEM,) and noun_of(stems(inside[0])) in self.wrappers)
            noun = self.container(name, is_list=is_list)
            if noun is not None:
                # What a proposal calls by a name of its own may be what it is about.
                own = not is_list or noun in self.nouns
                nouns, before = [noun] if own else [noun, *nouns], ()
            elif stems(name) and noun_of(stems(name)) not in self.wrappers | _LINKING:
                before = (*before, *stems(name))
        found = self.read_name((*before, *stems(path[-1])), nouns, facts)
        is_link = any(noun_of(stems(name)) in _LINKING for name in path[:-1])  # says which thing, and nothing about it
        return tuple(one for one in found if one.attribute == "id") if is_link else found

    def read_name(self, parts: tuple[str, ...], nouns: Sequence[str], facts: Facts) -> tuple[NounReading, ...]:
        """Return what the words of a name may mean for an owner of these nouns."""
        if not parts:
            return ()
        found: list[NounReading] = []
        if parts[-1] == "id":
            own = join(parts[:-1])
            if own in POSITIONS and own not in self.things:  # the parent of one thing is not that of another
                found += [NounReading(noun, join(parts)) for noun in nouns]
            else:
                found += [NounReading(own, "id")] if own else [NounReading(noun, "id") for noun in nouns]
        else:
            whole = join(parts)
            found += [NounReading(self.coded[whole], whole)] if whole in self.coded else []
            found += [NounReading(noun, whole) for noun in nouns]
            end = self.prefix(parts)
            if end:
                found.append(NounReading(join(parts[:end]), join(parts[end:])))
            scalar = facts.kind in ("string", "integer", "") and not facts.members and facts.values is None
            role = self.is_role(whole)  # `menu_order` is a place, not an order
            if scalar and ((whole in self.things and whole not in GENERIC) or (role and role != "order")):
                found.append(NounReading(whole, "id"))
        return tuple(dict.fromkeys(found))
