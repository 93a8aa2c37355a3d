"""Ontologies as loaded: their terms, their versions, and what they say together."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.text.diagnostics.diagnostic import brief

Kind = Literal["class", "object_property", "data_property", "individual"]
Scope = Literal["exact", "related", "broad", "narrow", "hidden"]


class Synonym(msgspec.Struct, frozen=True):
    text: str
    scope: Scope = "exact"


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A class, a property or an individual. References are IRIs, in sorted order."""

    iri: str
    kind: Kind
    types: tuple[str, ...] = ()  # classes of an individual, such as ioa:Capability
    labels: tuple[str, ...] = ()  # preferred names
    synonyms: tuple[Synonym, ...] = ()
    abbreviations: tuple[str, ...] = ()  # abbreviations, the preferred ones first
    comments: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()  # classes or properties above it
    equivalents: tuple[str, ...] = ()  # terms that the ontology declares equivalent
    domains: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    inverses: tuple[str, ...] = ()  # properties that lead in the opposite direction
    fillers: tuple[str, ...] = ()  # fillers of the existential restrictions above a class: the whole of a part
    in_domain: tuple[str, ...] = ()  # domains of a concept (ioa:inDomain)
    above: tuple[str, ...] = ()  # domains that contain this one (ioa:subDomainOf)
    requires: tuple[str, ...] = ()  # capabilities that an intent or a task requires (ioa:requiresCapability)
    applies_to: tuple[str, ...] = ()  # domains of an intent (ioa:appliesToDomain)
    inputs: tuple[str, ...] = ()  # inputs of a capability: media types or schemas
    outputs: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def local_name(self) -> str:
        """The end of the IRI, behind `#` or the last `/`."""
        return self.iri.rsplit("#", 1)[-1].rstrip("/").rsplit("/", 1)[-1]


class OntologyRef(msgspec.Struct, frozen=True, order=True):
    """One exact version of an ontology."""

    id: str
    version: str

    def __str__(self) -> str:
        return f"{self.id} {self.version}"


class Ontology(msgspec.Struct, frozen=True, kw_only=True):
    id: str  # IRI of the ontology, as ioa:ontologyId names it
    version: str  # version, or an empty string if the document does not say one
    terms: Mapping[str, Term]
    agents: Mapping[str, tuple[str, ...]] = {}  # capabilities that it gives to agents (ioa:hasCapability), by agent

    @property
    def ref(self) -> OntologyRef:
        return OntologyRef(self.id, self.version)


_NUMBERS: Final = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")

Compatibility = Literal["compatible", "older", "other_major", "incomparable"]
"""Whether a provider's version serves a request; `older` means that its minor version is too low."""


class OntologyVersion(msgspec.Struct, frozen=True, order=True):
    """A version that compares with others of its scheme."""

    dated: bool  # True for a date, which does not compare with numbers
    parts: tuple[int, ...]  # numbers, the major first, without trailing zeros behind the minor


def parse_version(text: str | float) -> OntologyVersion | None:
    """Parse numbers with points, `2.1`, or a date, `2026-03-01`; return None for what does not compare."""
    text = str(text) if not isinstance(text, bool) else ""
    if found := _NUMBERS.fullmatch(text):
        parts = [int(part) for part in found[1].split(".")]
        parts += [0] * (2 - len(parts))
        while len(parts) > 2 and not parts[-1]:
            parts.pop()
        return OntologyVersion(dated=False, parts=tuple(parts))
    if found := _DATE.fullmatch(text):
        return OntologyVersion(dated=True, parts=tuple(int(part) for part in found.groups()))
    return None


def compare_versions(provided: str | float, requested: str | float) -> Compatibility:
    """Compare a provider's version with a requested one; patch numbers do not matter.

    The draft does not say when versions are compatible (7.1). Backwards compatibility within a major version (5.3)
    means: the same major, and a minor that is not lower than the requested one.
    """
    if str(provided) == str(requested):
        return "compatible"
    ours, theirs = parse_version(provided), parse_version(requested)
    if ours is None or theirs is None or ours.dated != theirs.dated:
        return "incomparable"
    if ours.parts[0] != theirs.parts[0]:
        return "other_major"
    # Dates of one year are ordered by month and day; of numbers, only the minor counts.
    kept = 3 if ours.dated else 2
    return "compatible" if ours.parts[:kept] >= theirs.parts[:kept] else "older"


def succession_fault(version: str, latest: str) -> str | None:
    """Return why a version cannot follow the latest one, or None. A downgrade or an unknown order is refused."""
    new, old = parse_version(version), parse_version(latest)
    if new is None or old is None or new.dated != old.dated:
        return f"version {brief(version)} does not compare with {brief(latest)}; use numbers with points, or dates"
    if new < old:
        return f"version {brief(version)} is older than {brief(latest)}; register a newer version"
    return None


_KINDS: Final = {  # attributes with the terms of core classes
    "Capability": "capabilities",
    "Intent": "intents",
    "Concept": "concepts",
    "Domain": "domains",
    "Agent": "agents",
    "Task": "tasks",
}


class Meanings:
    """Immutable index over several ontologies. A domain ontology extends the core, so terms are looked up in all.

    A term that two ontologies declare has the relations of both, unless its IRI begins with the id of one: then the
    first of these alone says what it means, and another cannot bend it (IoA 13). Closures are walked, not stored: a
    hostile chain of classes must not need quadratic memory.
    """

    def __init__(self, ontologies: Iterable[Ontology] = (), namespace: Namespace = DEFAULT) -> None:
        """Index ontologies in the order in which they were registered."""
        self.namespace = namespace
        given = tuple(ontologies)  # drafts without an id may share a reference, and all of them count
        self.ontologies: Mapping[OntologyRef, Ontology] = {one.ref: one for one in given}
        self._terms = frozenset(iri for one in given for iri in one.terms)
        self._above: dict[str, frozenset[str]] = {}
        self._types: dict[str, frozenset[str]] = {}
        self._wider: dict[str, frozenset[str]] = {}
        self.requires: dict[str, frozenset[str]] = {}  # capabilities that an intent or a task requires
        self.applies_to: dict[str, frozenset[str]] = {}  # domains that an intent applies to; nothing means all
        self.in_domain: dict[str, frozenset[str]] = {}  # domains of a concept
        homes: dict[str, str] = {}  # first ontology whose id a term begins with
        for one in given:
            base = one.id.rstrip("#/")
            homes = {iri: one.id for iri in one.terms if base and iri.startswith((f"{base}#", f"{base}/"))} | homes
        for ontology in given:
            for term in ontology.terms.values():
                if homes.get(term.iri, ontology.id) == ontology.id:
                    self._add(term)
        self._set_kinds(self.of_type)

    def _set_kinds(self, kind: Callable[[str], frozenset[str]]) -> None:
        self.capabilities, self.intents = kind("Capability"), kind("Intent")
        self.concepts, self.domains = kind("Concept"), kind("Domain")
        self.agents, self.tasks = kind("Agent"), kind("Task")

    def beside(self, ontology: Ontology) -> Meanings:
        """Return an index that has the individuals of one more ontology too, whose names no other one has."""
        made = copy.copy(self)
        made.ontologies = {**self.ontologies, ontology.ref: ontology}
        made._terms = self._terms | frozenset(ontology.terms)
        for name in ("_above", "_types", "_wider", "requires", "applies_to", "in_domain"):
            setattr(made, name, dict(getattr(self, name)))
        for term in ontology.terms.values():
            made._add(term)

        def kind(name: str) -> frozenset[str]:
            known: frozenset[str] = getattr(self, _KINDS[name])
            above = known | {self.namespace(name)}
            terms = ontology.terms.values()
            added = (one for one in terms if not above.isdisjoint((*one.types, *one.parents, *one.equivalents)))
            return known.union(one.iri for one in added)

        made._set_kinds(kind)
        return made

    def _add(self, term: Term) -> None:
        # Equivalent classes are above each other.
        for index, values in (
            (self._above, (*term.parents, *term.equivalents)),
            (self._types, term.types),
            (self._wider, term.above),
            (self.requires, term.requires),
            (self.applies_to, term.applies_to),
            (self.in_domain, term.in_domain),
        ):
            if values:
                index[term.iri] = index.get(term.iri, frozenset()) | frozenset(values)

    def of_type(self, name: str) -> frozenset[str]:
        """Return the terms that are of a core class, or of a class below it, or are such a class themselves."""
        wanted = self.namespace(name)
        children: dict[str, set[str]] = {}
        for iri, parents in self._above.items():
            for parent in parents:
                children.setdefault(parent, set()).add(iri)
        below = frozenset(_walk(children, wanted))
        found = {iri for iri, types in self._types.items() if not below.isdisjoint(types)}
        return frozenset(found | (below - {wanted}))

    def ancestors(self, iri: str) -> Iterator[str]:
        """Yield a term and everything above it, nearest first."""
        return _walk(self._above, iri)

    def subsumes(self, general: str, special: str) -> bool:
        """Return True if a term is another one or stands above it."""
        return general == special or general in self.ancestors(special)

    def contains(self, domain: str, inner: str, *, strict: bool = False) -> bool:
        """Return True if a domain is another one or contains it; `strict` leaves sub-domains out."""
        return domain == inner or (not strict and domain in _walk(self._wider, inner))

    def __contains__(self, iri: str) -> bool:
        return iri in self._terms


def _walk(edges: Mapping[str, Iterable[str]], start: str) -> Iterator[str]:
    """Yield everything that can be reached, each once: declared hierarchies may have cycles."""
    seen, level = {start}, [start]
    while level:
        yield from level
        reached = {found for iri in level for found in edges.get(iri, ())} - seen
        seen |= reached
        level = sorted(reached)
