"""Confidence of alignments and of their rules."""

from __future__ import annotations

from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule
from bespeak.extensions.semantics.terms import OntologyRef

RAD, CLINICAL = OntologyRef("https://x.org/onto/rad", "1.0"), OntologyRef("https://y.org/onto/clinical", "2.1")
SURE, DOUBTFUL, UNSAID = (MappingRule(source="x:a", target="y:a", confidence=value) for value in (0.9, 0.4, None))


def align(*rules: MappingRule, given: float | None = None) -> Alignment:
    return Alignment(source=RAD, target=CLINICAL, rules=rules, given_confidence=given)


def test_confidence_is_that_of_the_rule_or_of_its_artifact_and_of_an_artifact_the_lowest() -> None:
    assert align(SURE, DOUBTFUL).confidence == 0.4
    assert align(SURE, DOUBTFUL, given=0.91).confidence == 0.91
    assert align().confidence == 0.0
    artifact = align(SURE, UNSAID, given=0.91)
    assert [artifact.confidence_of(rule) for rule in artifact.rules] == [0.9, 0.91]
