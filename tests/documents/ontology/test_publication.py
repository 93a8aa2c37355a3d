"""Published documents of the core: golden files, and one meaning in all notations."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse
from tests.cases import check_each

from bespeak.contract.ontology.core import CLASSES, PROPERTIES, Namespace
from bespeak.documents.ontology.publication import publish_core
from bespeak.documents.ontology.reader import read_ontology

PUBLISHED = Path(__file__).with_name("published")


def test_documents_are_those_that_were_reviewed() -> None:
    """After a change of the table, write them with `bespeak semantic publish -o tests/documents/ontology/published`."""
    documents = publish_core()
    assert {path.name for path in PUBLISHED.iterdir()} == documents.keys()
    check_each(documents, lambda name: _same(name, documents[name]))


def _same(name: str, text: str) -> None:
    assert (PUBLISHED / name).read_text() == text


def test_every_name_follows_the_base() -> None:
    for name, text in publish_core(Namespace("https://acme.example/m/")).items():
        assert "https://acme.example/m/ioa/" in text, name
        assert "ex.org" not in text, name


def test_turtle_and_json_ld_are_the_same_graph() -> None:
    documents = publish_core()
    graphs = [
        Dataset(parse(documents["core.ttl"], RdfFormat.TURTLE)),
        Dataset(parse(documents["core.jsonld"], RdfFormat.JSON_LD)),
    ]
    for graph in graphs:
        graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert graphs[0] == graphs[1]


@pytest.mark.requirement("IOA-5-2")
def test_core_is_an_owl_ontology_that_the_reader_understands() -> None:
    ontology, findings = read_ontology(publish_core()["core.ttl"].encode(), "core.ttl")
    assert ontology is not None
    assert findings == []
    assert (ontology.id, ontology.version) == ("https://ex.org/onto/agent-core", "1.0")
    kinds = {term.local_name: term.kind for term in ontology.terms.values()}
    assert kinds == {
        **dict.fromkeys(CLASSES, "class"),
        **{name: "object_property" if one.is_object else "data_property" for name, one in PROPERTIES.items()},
    }
    requires = next(term for term in ontology.terms.values() if term.local_name == "requiresCapability")
    assert [iri.rpartition("#")[2] for iri in requires.domains] == ["Intent", "Task"]
