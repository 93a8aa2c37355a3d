"""What registered ontologies say together, indexed for the checks of a profile."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology, OntologyRef
from bespeak.contract.ontology.term import Term

_NOTHING: Final[frozenset[str]] = frozenset()
_KINDS: Final = {
    "Capability": "capabilities",
    "Intent": "intents",
    "Concept": "concepts",
    "Domain": "domains",
    "Agent": "agents",
    "Task": "tasks",
}
"""Attributes with the terms of core classes."""


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
        self.requires: dict[str, frozenset[str]] = {}
        """Capabilities that an intent or a task requires."""
        self.applies_to: dict[str, frozenset[str]] = {}
        """Domains that an intent applies to; nothing means all."""
        self.in_domain: dict[str, frozenset[str]] = {}
        """Domains of a concept."""
        homes = _homes(given)
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
        """Return an index that has the individuals of one more ontology too, whose names no other one has.

        It takes little time: nothing that is known is walked again.
        """
        made = copy.copy(self)
        made.ontologies = {**self.ontologies, ontology.ref: ontology}
        made._terms = self._terms | frozenset(ontology.terms)
        for name in ("_above", "_types", "_wider", "requires", "applies_to", "in_domain"):
            setattr(made, name, dict(getattr(self, name)))
        for term in ontology.terms.values():
            made._add(term)

        def kind(name: str) -> frozenset[str]:
            known: frozenset[str] = getattr(self, _KINDS[name])
            core = self.namespace(name)
            return known | {
                iri
                for iri, term in ontology.terms.items()
                if any(each == core or each in known for each in (*term.types, *term.parents, *term.equivalents))
            }

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
                index[term.iri] = index.get(term.iri, _NOTHING) | frozenset(values)

    def of_type(self, name: str) -> frozenset[str]:
        """Return the terms that are of a core class, or of a class below it, or are such a class themselves."""
        wanted = self.namespace(name)
        below = self._below(wanted)
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
        """Return True if an ontology declares the term."""
        return iri in self._terms

    def _below(self, wanted: str) -> frozenset[str]:
        children: dict[str, set[str]] = {}
        for iri, parents in self._above.items():
            for parent in parents:
                children.setdefault(parent, set()).add(iri)
        return frozenset(_walk(children, wanted))


def _homes(ontologies: Iterable[Ontology]) -> dict[str, str]:
    """Return the first ontology whose id a term begins with, by term."""
    found: dict[str, str] = {}
    for one in ontologies:
        base = one.id.rstrip("#/")
        begin = (f"{base}#", f"{base}/")
        found = {iri: one.id for iri in one.terms if base and iri.startswith(begin)} | found
    return found


def _walk(edges: Mapping[str, Iterable[str]], start: str) -> Iterator[str]:
    """Yield everything that can be reached, each once: declared hierarchies may have cycles."""
    seen, level = {start}, [start]
    while level:
        yield from level
        reached = {found for iri in level for found in edges.get(iri, ())} - seen
        seen |= reached
        level = sorted(reached)
