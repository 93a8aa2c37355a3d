"""Outcomes as data for peers."""

from __future__ import annotations

from tests.meaning import CLINICAL, RAD, alignment

from bespeak.checks.alignment.translation import Translator
from bespeak.contract.ontology.matching import UNCOVERED
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.contract.ontology.profile import Verdict, Violation
from bespeak.runtime.semantic.negotiation import Outcome
from bespeak.runtime.semantic.translation import UsedMapping


def test_document_has_what_a_peer_needs() -> None:
    translator = Translator([alignment()])
    found = translator.translate(f"{RAD}#report-summary", RAD, CLINICAL)
    assert found is not None
    used = UsedMapping(f"{RAD}#report-summary", found)
    told = Outcome(
        match="mapped", explanation=("a",), confidence=0.91, ontology=OntologyRef("y:", "1.0"), mappings=(used,)
    ).document()
    assert told == {
        "match": "mapped",
        "status": "accept",
        "confidence": 0.91,
        "ontologyId": "y:",
        "ontologyVersion": "1.0",
        "mappings": [used.document()],
        "explanation": ["a"],
    }


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
