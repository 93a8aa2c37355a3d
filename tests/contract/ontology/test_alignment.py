"""Confidence of alignments and of their rules."""

from __future__ import annotations

from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.contract.ontology.ontology import OntologyRef

RAD, CLINICAL = OntologyRef("https://x.org/onto/rad", "1.0"), OntologyRef("https://y.org/onto/clinical", "2.1")
SURE, DOUBTFUL, UNSAID = (MappingRule(source="x:a", target="y:a", confidence=value) for value in (0.9, 0.4, None))


def align(*rules: MappingRule, given: float | None = None) -> Alignment:
    return Alignment(source=RAD, target=CLINICAL, rules=rules, given_confidence=given)


def test_confidence_of_an_artifact_is_given_or_the_lowest_of_its_rules() -> None:
    assert align(SURE, DOUBTFUL).confidence == 0.4
    assert align(SURE, DOUBTFUL, given=0.91).confidence == 0.91
    assert align().confidence == 0.0


def test_rule_without_a_confidence_has_that_of_its_artifact() -> None:
    artifact = align(SURE, UNSAID, given=0.91)
    assert [artifact.confidence_of(rule) for rule in artifact.rules] == [0.9, 0.91]
