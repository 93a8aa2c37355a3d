"""Statements by node and slot: texts by language, class expressions, and bounded work."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.core import DEFAULT, OWL, RDF, RDFS
from bespeak.documents.ontology.contexts import LIMITS, DocumentRefused, OntologyLimits
from bespeak.documents.ontology.reader import Graph
from bespeak.documents.ontology.triples import Triple


def graph(*triples: Triple, limits: OntologyLimits = LIMITS) -> Graph:
    return Graph(triples, DEFAULT, "file", limits)


def test_english_and_plain_texts_come_first_and_once() -> None:
    label = f"{RDFS}label"
    found = graph(
        ("x:a", label, "Arm", "de"),
        ("x:a", label, "arm", "en-GB"),
        ("x:a", label, "arm", ""),
        ("x:a", label, "x:resource", None),
        ("x:a", "x:unknown", "other", ""),
    )
    assert found.texts("x:a", "labels") == ["arm", "Arm"]
    assert found.texts("x:b", "labels") == []


def test_operands_are_found_in_nested_unions_and_restrictions() -> None:
    found = graph(
        ("x:p", f"{RDFS}domain", "_:u", None),
        ("_:u", f"{OWL}unionOf", "_:1", None),
        ("_:1", f"{RDF}first", "x:a", None),
        ("_:1", f"{RDF}rest", "_:2", None),
        ("_:2", f"{RDF}first", "_:r", None),
        ("_:r", f"{OWL}someValuesFrom", "x:filler", None),
    )
    assert found.operands("x:p", "domains") == ({"x:a"}, {"x:filler"})
    assert found.named("x:p", "domains") == ()


def test_visits_of_shared_nodes_are_counted() -> None:
    cells = [("_:u", f"{OWL}unionOf", "_:0", None), *((f"_:{n}", f"{RDF}rest", f"_:{n + 1}", None) for n in range(9))]
    users = [(f"x:{n}", f"{RDFS}subClassOf", "_:u", None) for n in range(9)]
    shared = graph(*cells, *users, limits=OntologyLimits(triples=10))
    with pytest.raises(DocumentRefused, match="I101"):
        [shared.operands(f"x:{number}", "parents") for number in range(9)]
