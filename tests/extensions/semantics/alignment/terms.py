"""Small ontologies for the tests of the aligner."""

from __future__ import annotations

from typing import Any

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.terms import Kind, Ontology, Synonym, Term

A, B = "https://a.example/o", "https://b.example/o"


def term(iri: str, label: str = "", kind: Kind = "class", *, synonyms: tuple[str, ...] = (), **more: Any) -> Term:
    labels = (label,) if label else ()
    return Term(iri=iri, kind=kind, labels=labels, synonyms=tuple(Synonym(text) for text in synonyms), **more)


def ontology(iri: str, *labels: str, terms: tuple[Term, ...] = (), version: str = "1.0") -> Ontology:
    """Return an ontology of classes with these labels, and further terms."""
    found = [term(f"{iri}#{place}", label) for place, label in enumerate(labels)]
    return Ontology(id=iri, version=version, terms={one.iri: one for one in (*found, *terms)})


def capability(iri: str, label: str, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> Term:
    types = (DEFAULT("Capability"),)
    return Term(iri=iri, kind="individual", labels=(label,), types=types, inputs=inputs, outputs=outputs)
