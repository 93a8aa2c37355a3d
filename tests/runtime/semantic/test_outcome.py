"""Outcomes as data for peers."""

from __future__ import annotations

from bespeak.contract.ontology.alignment import MappingRule
from bespeak.contract.ontology.matching import UNCOVERED
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.contract.ontology.verdict import Verdict, Violation
from bespeak.runtime.semantic.outcome import Outcome, UsedMapping


def test_document_has_what_a_peer_needs() -> None:
    used = UsedMapping(MappingRule(source="x:a", target="y:b", score=0.4), 0.91, "x:align")
    told = Outcome(
        match="mapped", explanation=("a",), confidence=0.91, ontology=OntologyRef("y:", "1.0"), mappings=(used,)
    ).document()
    assert told == {
        "match": "mapped",
        "status": "accept",
        "confidence": 0.91,
        "ontologyId": "y:",
        "ontologyVersion": "1.0",
        "mappings": [
            {"from": "x:a", "to": "y:b", "relation": "equivalent", "confidence": 0.91, "alignmentRef": "x:align"}
        ],
        "explanation": ["a"],
    }
    assert used.sentence == "x:a means y:b: equivalent, confidence 0.91, by x:align."


def test_document_of_a_failure_names_rule_path_value_and_message() -> None:
    verdict = Verdict("reject", (Violation.of(UNCOVERED, "/intentRef", "x:a", "y:"),))
    told = Outcome(match="none", explanation=(), verdict=verdict).document()
    assert told["violations"] == [
        {
            "rule": "I243",
            "path": "/intentRef",
            "value": "x:a",
            "message": "/intentRef is 'x:a', for which there is no mapping to 'y:'",
        }
    ]
    assert told["validation"]["status"] == "reject"
