"""A term of an ontology: its names, and its relations to other terms."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["class", "object_property", "data_property", "individual"]
Scope = Literal["exact", "related", "broad", "narrow", "hidden"]


class Synonym(msgspec.Struct, frozen=True):
    """Another name of a term, and how close it is."""

    text: str
    scope: Scope = "exact"


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A class, a property or an individual. References are IRIs, in sorted order."""

    iri: str
    kind: Kind
    types: tuple[str, ...] = ()
    """Classes of an individual, such as ioa:Capability."""
    labels: tuple[str, ...] = ()
    """Preferred names."""
    synonyms: tuple[Synonym, ...] = ()
    abbreviations: tuple[str, ...] = ()
    """Abbreviations, the preferred ones first."""
    comments: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    """Classes or properties above it."""
    equivalents: tuple[str, ...] = ()
    """Terms that the ontology declares equivalent."""
    domains: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    inverses: tuple[str, ...] = ()
    """Properties that lead in the opposite direction."""
    fillers: tuple[str, ...] = ()
    """Fillers of the existential restrictions above a class, such as the whole that it is a part of."""
    in_domain: tuple[str, ...] = ()
    """Domains of a concept (ioa:inDomain)."""
    above: tuple[str, ...] = ()
    """Domains that contain this one (ioa:subDomainOf)."""
    requires: tuple[str, ...] = ()
    """Capabilities that an intent or a task requires (ioa:requiresCapability)."""
    applies_to: tuple[str, ...] = ()
    """Domains of an intent (ioa:appliesToDomain)."""
    inputs: tuple[str, ...] = ()
    """Inputs of a capability: media types or schemas."""
    outputs: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def local_name(self) -> str:
        """The end of the IRI, behind `#` or the last `/`."""
        return self.iri.rsplit("#", 1)[-1].rstrip("/").rsplit("/", 1)[-1]
