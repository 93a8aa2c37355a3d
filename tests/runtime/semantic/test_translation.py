"""Directions of alignments, and what of a profile they translate."""

from __future__ import annotations

from tests.meaning import CLINICAL, RAD, RAD_PROFILE, alignment, ontology

from bespeak.checks.alignment.policy import Policy
from bespeak.contract.ontology.alignment import MappingRule
from bespeak.documents.envelope.reader import parse
from bespeak.runtime.semantic.translation import Translation, directions_of, is_accepted


def test_only_equal_and_broader_targets_stand_in() -> None:
    there, back = directions_of(alignment())
    assert sorted(there.rules) == [f"{RAD}#Radiology", f"{RAD}#report-summary", f"{RAD}#summarize-report"]
    assert sorted(back.rules) == [f"{CLINICAL}#note-summarize", f"{CLINICAL}#summary-intent"]
    assert (back.source.id, back.target.id) == (CLINICAL, RAD)


def test_rules_have_the_confidence_and_provenance_of_their_artifact() -> None:
    given = MappingRule(source=f"{RAD}#a", target=f"{CLINICAL}#b")
    [rule] = directions_of(alignment(rules=(given,)))[0].rules[given.source]
    assert rule.confidence == 0.91
    assert rule.provenance is not None
    assert rule.provenance.author == "Terminology board of X and Y"


def test_equal_target_comes_before_a_broader_one() -> None:
    broader = MappingRule(
        source=f"{RAD}#report-summary", target=f"{CLINICAL}#document-summarize", relation="broader", confidence=1.0
    )
    there, _ = directions_of(alignment(rules=(broader, *alignment().rules)))
    profile = parse(RAD_PROFILE).profile
    assert profile is not None
    translation = Translation([there], ontology("clinical"), Policy())
    assert translation.translate(profile).capability_refs == (f"{CLINICAL}#note-summarize",)
    assert translation.broken == []


def test_target_that_the_ontology_does_not_declare_is_not_used() -> None:
    lost = MappingRule(source=f"{RAD}#report-summary", target=f"{CLINICAL}#gone", confidence=1.0)
    there, _ = directions_of(alignment(rules=(lost,)))
    profile = parse(RAD_PROFILE).profile
    assert profile is not None
    translation = Translation([there], ontology("clinical"), Policy())
    translation.translate(profile)
    assert [one.rule for one in translation.broken] == ["I243", "I243"]


def test_decision_of_a_person_counts_whatever_the_confidence() -> None:
    rule = MappingRule(source="x:a", target="x:b", confidence=0.1)
    assert not is_accepted(rule, Policy())
    assert is_accepted(MappingRule(source="x:a", target="x:b", override=True), Policy())
