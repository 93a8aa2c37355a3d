"""The core ontology tells how binding each term is."""

from __future__ import annotations

from bespeak.documents.ontology.publication import core_turtle


def test_terms_are_marked_by_their_source() -> None:
    text = core_turtle()
    assert 'skos:note "Required by IoA 5.1."' in text
    assert 'skos:note "From the examples of IoA 5.5, which does not declare it."' in text
    assert "ioa:subDomainOf a owl:ObjectProperty, owl:TransitiveProperty ;" in text
    assert "owl:inverseOf ioa:providedBy" in text
