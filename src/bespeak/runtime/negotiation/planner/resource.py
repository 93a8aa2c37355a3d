"""Resources: what a path is about, by its segments."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Final

from bespeak.documents.adoption.naming import is_plural, words
from bespeak.runtime.negotiation.planner.term import COLLECTIVE, GENERIC, KEYS, noun_of, stems
from bespeak.text.language.lexicon import lexicon

_VERSION: Final = re.compile(r"v\d+(?:[._]\d+)*|api|rest", re.ASCII)
_REPEATED: Final = re.compile(r"-\d+$", re.ASCII)
"""What importers add to a segment to keep routes apart: `/movies-2` are movies too."""
_SEARCHING: Final = frozenset(("all", "data", "directory", "find", "list", "lookup", "query", "search"))
_FORMATS: Final = frozenset(("csv", "geojson", "json"))
"""Words for the form of an answer, which is the same things in any form."""
_ACCESS: Final = frozenset(("private", "public", "shared"))
LINKS: Final = frozenset(("and", "by", "for", "from", "in", "of", "on", "the", "to", "with"))
"""Words of a segment that only connect the others."""


@dataclass(frozen=True)
class Segment:
    """One segment of a path."""

    text: str
    is_keyed: bool = False
    """True if it names things that have ids, whatever it is called."""
    names_key: bool = False
    """True if it only says which key follows: `/users/email/{email}`."""

    @cached_property
    def parameter(self) -> str:
        """Name of the parameter; empty for a literal."""
        return self.text[1:-1] if self.text.startswith("{") else ""

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Words of a literal, in singular."""
        return () if self.parameter else stems(self.text)

    @cached_property
    def term(self) -> str:
        """The literal as one term."""
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
        """True if its last word is in plural."""
        parts = words(self.text)
        return bool(parts) and (is_plural(parts[-1]) or parts[-1] == "people")

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
class Resource:
    """What a path is about."""

    segments: tuple[Segment, ...]
    noun: str
    """What the endpoint deals with; empty if no segment names a thing."""
    parent: str
    """Noun of the literal before that; empty if there is none."""
    view: str
    """A part or choice of the noun that the last segment names: latest, status; empty for all of it."""
    owners: tuple[tuple[str, str], ...]
    """Path parameters, each with the noun that it identifies."""

    @cached_property
    def literals(self) -> list[Segment]:
        """Segments that name something."""
        return [segment for segment in self.segments if not segment.is_silent and not segment.parameter]

    @cached_property
    def nouns(self) -> list[str]:
        """Nouns of all literals, in order."""
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


def resource_of(path: str, things: Collection[str]) -> Resource:
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
    return Resource(segments, noun, parent, view, tuple(owners))
