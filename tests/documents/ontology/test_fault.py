"""A refusal inside the readers carries its finding."""

from __future__ import annotations

from bespeak.documents.ontology.contexts import DocumentRefused
from bespeak.documents.ontology.rules import TOO_LARGE


def test_refusal_says_what_its_finding_says() -> None:
    refused = DocumentRefused(TOO_LARGE.found("it is too large"))
    assert refused.finding.message in str(refused)
