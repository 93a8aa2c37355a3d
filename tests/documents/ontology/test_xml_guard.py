"""The check before the RDF parser admits ordinary RDF/XML; what it refuses is in test_triples.py."""

from __future__ import annotations

import pytest

from bespeak.documents.ontology.contexts import LIMITS, DocumentRefused, OntologyLimits
from bespeak.documents.ontology.triples import check_xml

NESTED = b'<!DOCTYPE a [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]>\n<a x="&owl;"><b><c/><c/></b><!-- <d> --></a>'


def test_plain_entities_and_shallow_elements_pass() -> None:
    check_xml(NESTED, "file", OntologyLimits(depth=3))


def test_refusal_names_line_and_column() -> None:
    with pytest.raises(DocumentRefused) as refused:
        check_xml(NESTED, "file", OntologyLimits(depth=2))
    assert str(refused.value.finding.location) == "file:2:17"
    with pytest.raises(DocumentRefused, match=r"file:1:4: error\[I102\]: this is not XML"):
        check_xml(b"<a>", "file", LIMITS)
