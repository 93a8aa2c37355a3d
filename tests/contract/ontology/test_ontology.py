"""Ontologies and terms: selection by kind and type."""

from __future__ import annotations

from bespeak.contract.ontology.ontology import Ontology, OntologyRef, Term

TERMS = (
    Term(iri="https://ex.org/o#b", kind="class"),
    Term(iri="https://ex.org/o#a", kind="class"),
    Term(iri="https://ex.org/o/p/", kind="object_property"),
    Term(iri="https://ex.org/o#i", kind="individual", types=("https://ex.org/o#a",)),
)
ONTOLOGY = Ontology(id="https://ex.org/o", version="1.0", terms={term.iri: term for term in TERMS})


def test_terms_are_selected_by_kind_and_type_in_order() -> None:
    assert [term.local_name for term in ONTOLOGY.of_kind("class")] == ["a", "b"]
    assert [term.local_name for term in ONTOLOGY.of_kind("object_property", "individual")] == ["i", "p"]
    assert [term.local_name for term in ONTOLOGY.of_type("https://ex.org/o#a")] == ["i"]


def test_reference_names_the_exact_version() -> None:
    assert ONTOLOGY.ref == OntologyRef("https://ex.org/o", "1.0")
    assert str(ONTOLOGY.ref) == "https://ex.org/o 1.0"
