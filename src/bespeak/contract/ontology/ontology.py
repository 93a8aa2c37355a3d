"""An ontology as loaded: its identity, and its terms by IRI."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bespeak.contract.ontology.term import Kind, Term


class OntologyRef(msgspec.Struct, frozen=True, order=True):
    """One exact version of an ontology."""

    id: str
    version: str

    def __str__(self) -> str:
        """Return the reference for people."""
        return f"{self.id} {self.version}"


class Ontology(msgspec.Struct, frozen=True, kw_only=True):
    """A vocabulary in one version."""

    id: str
    """IRI of the ontology, as ioa:ontologyId names it."""
    version: str
    """Version, or an empty string if the document does not say one."""
    terms: Mapping[str, Term]
    imports: tuple[str, ...] = ()
    """Ontologies that it extends; they are not fetched."""
    agents: Mapping[str, tuple[str, ...]] = {}
    """Capabilities that the ontology itself gives to agents (ioa:hasCapability), by agent."""

    @property
    def ref(self) -> OntologyRef:
        """Reference to this exact version."""
        return OntologyRef(self.id, self.version)

    def of_kind(self, *kinds: Kind) -> list[Term]:
        """Return the terms of some kinds, sorted by IRI."""
        return sorted((term for term in self.terms.values() if term.kind in kinds), key=lambda term: term.iri)

    def of_type(self, iri: str) -> list[Term]:
        """Return the individuals of a class, sorted by IRI."""
        return sorted((term for term in self.terms.values() if iri in term.types), key=lambda term: term.iri)
