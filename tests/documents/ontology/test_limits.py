"""Every limit of a reader can be lowered, and ends in a finding; the other tests show each."""

from __future__ import annotations

import pytest
from tests.documents.ontology.figures import FIGURE_3

from bespeak.documents.ontology.contexts import OntologyLimits
from bespeak.documents.ontology.reader import read_ontology


@pytest.mark.parametrize("name", ["size", "triples", "characters"])
def test_limit_of_one_refuses_an_ordinary_document(name: str) -> None:
    ontology, [finding] = read_ontology(FIGURE_3.encode(), "f.ttl", limits=OntologyLimits(**{name: 1}))
    assert ontology is None
    assert finding.rule == "I101"
