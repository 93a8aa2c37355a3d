"""Terms are translated by the surest way through accepted alignments."""

from __future__ import annotations

import pytest

from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Policy, Relation
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.extensions.semantics.translation import Translator

A, B, C, D, E = (OntologyRef(f"https://{name}.example", "1.0") for name in "abcde")


def mapped(source: OntologyRef, target: OntologyRef, *rules: MappingRule, name: str = "") -> Alignment:
    return Alignment(source=source, target=target, rules=rules, id=name)


def rule(source: str, target: str, confidence: float | None = 0.9, relation: Relation = "equivalent") -> MappingRule:
    return MappingRule(source=source, target=target, confidence=confidence, relation=relation)


AB = mapped(A, B, rule("a:1", "b:1"), name="urn:ab")
BC = mapped(B, C, rule("b:1", "c:1", 0.8), name="urn:bc")


def test_confidence_is_that_of_the_rule_or_artifact_and_of_several_steps_their_product() -> None:
    found = Translator([AB]).translate("a:1", A.id, B.id)
    assert (found.iri, found.ontology, found.confidence) == ("b:1", B, 0.9)
    assert found.explain() == "a:1 means b:1 (confidence 0.90; urn:ab)"
    found = Translator([AB, BC]).translate("a:1", A.id, C.id)
    assert found.confidence == pytest.approx(0.72)
    assert [step.alignment for step in found.steps] == ["urn:ab", "urn:bc"]
    given = Alignment(source=A, target=B, rules=(rule("a:1", "b:1", None),), given_confidence=0.7)
    found = Translator([given]).translate("a:1", A.id, B.id)
    assert found.confidence == 0.7


def test_alignment_serves_both_directions_and_the_surest_way_wins() -> None:
    found = Translator([AB, BC]).translate("c:1", C.id, A.id)
    assert found.iri == "a:1"
    assert all(step.inverted for step in found.steps)
    assert "inverted" in found.explain()
    weak = mapped(A, C, rule("a:1", "c:2", 0.5))
    found = Translator([AB, BC, weak]).translate("a:1", A.id, C.id)
    assert found.iri == "c:1"


def test_relation_of_the_whole_way_must_be_wanted() -> None:
    broader = mapped(B, C, rule("b:1", "c:1", 0.8, "broader"))
    translator = Translator([AB, broader])
    assert translator.translate("a:1", A.id, C.id) is None
    found = translator.translate("a:1", A.id, C.id, relations=("equivalent", "broader"))
    assert found.relation == "broader"
    back = mapped(C, D, rule("c:1", "d:1", 0.9, "narrower"))
    assert (
        Translator([AB, broader, back]).translate("a:1", A.id, D.id, relations=("broader", "narrower", "related"))
        is None
    )


def test_disagreeing_artifacts_are_resolved_by_policy() -> None:
    other = mapped(A, B, MappingRule(source="a:1", target="b:2", confidence=0.5, override=True), name="urn:mine")
    assert getattr(Translator([AB, other]).translate("a:1", A.id, B.id), "iri", None) == "b:1"
    policy = Policy(priorities={"override": 1})
    found = Translator([AB, other], policy).translate("a:1", A.id, B.id)
    assert found.iri == "b:2"
    assert "decided by a user" in found.explain()


def test_translation_beyond_three_steps_is_none() -> None:
    chain = [AB, BC, mapped(C, D, rule("c:1", "d:1")), mapped(D, E, rule("d:1", "e:1"))]
    assert Translator(chain).translate("a:1", A.id, D.id) is not None
    assert Translator(chain).translate("a:1", A.id, E.id) is None
    assert Translator(chain).translate("x:1", A.id, B.id) is None
