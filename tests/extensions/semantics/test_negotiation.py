"""Outcomes of a negotiation: direct, mapped or none, each with its reasons."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.meaning import ALIGNMENT, CLINICAL, CLINICAL_PROFILE, CS, LAW, RAD, RAD_PROFILE, alignment, snapshot

from bespeak.checks.alignment.translation import Translator
from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.contract.ontology.matching import UNCOVERED
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.contract.ontology.profile import Verdict, Violation
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.documents.envelope.reader import parse
from bespeak.extensions.semantics.negotiation import Offer, SemanticNegotiation, SemanticOutcome
from bespeak.extensions.semantics.translation import UsedMapping

CORE = "https://ex.org/onto/agent-core"
OFFER = Offer((CLINICAL, CORE), (f"{CLINICAL}#note-summarize",))


def negotiate(
    document: dict[str, Any], offer: Offer = OFFER, given: Alignment | None = None, **settings: Any
) -> SemanticOutcome:
    profile = parse(document).profile
    assert profile is not None
    negotiation = SemanticNegotiation(SemanticSettings(**settings))
    known = snapshot(given or alignment(), policy=negotiation.mapping_policy)
    return negotiation.negotiate(profile, offer, known)


def broken(outcome: SemanticOutcome) -> list[tuple[str, str]]:
    assert outcome.match == "none"
    return [(one.rule, one.path) for one in outcome.verdict.violations]


@pytest.mark.requirement("IOA-7.1-2")
@pytest.mark.parametrize("version", ["2.1", "2.0", "2"])
def test_same_ontology_in_a_compatible_version_is_a_direct_match(version: str) -> None:
    outcome = negotiate({**CLINICAL_PROFILE, "ontologyVersion": version})
    assert (outcome.match, outcome.confidence, outcome.mappings) == ("direct", 1.0, ())
    assert outcome.ontology is not None
    assert str(outcome.ontology) == f"{CLINICAL} 2.1"


@pytest.mark.parametrize(("version", "rule"), [("2.2", "I232"), ("3.0", "I232"), ("draft", "I231")])
def test_version_that_is_not_served_is_named(version: str, rule: str) -> None:
    outcome = negotiate({**CLINICAL_PROFILE, "ontologyVersion": version})
    assert broken(outcome) == [(rule, "/ontologyVersion")]
    assert outcome.verdict.status == "renegotiate"


@pytest.mark.requirement("IOA-7.1-3")
@pytest.mark.parametrize("refs", [{}, {"alignmentRef": ALIGNMENT}])
def test_registered_alignment_makes_a_mapped_match(refs: dict[str, str]) -> None:
    outcome = negotiate({**RAD_PROFILE, **refs})
    assert (outcome.match, outcome.confidence) == ("mapped", 0.91)
    assert outcome.profile is not None
    assert outcome.profile.capability_refs == (f"{CLINICAL}#note-summarize",)
    assert outcome.profile.intent_ref == f"{CLINICAL}#summary-intent"
    assert {one.translation.steps[0].alignment for one in outcome.mappings} == {ALIGNMENT}
    assert any("note-summarize" in sentence and "0.91" in sentence for sentence in outcome.explanation)


def test_alignment_is_turned_around_for_the_other_side() -> None:
    outcome = negotiate(CLINICAL_PROFILE, Offer((RAD, CORE), (f"{RAD}#report-summary",)))
    assert outcome.match == "mapped"
    assert outcome.profile is not None
    assert outcome.profile.capability_refs == (f"{RAD}#report-summary",)


def test_domain_is_translated_too() -> None:
    outcome = negotiate({**RAD_PROFILE, "profileContext": {"domain": "rad:Radiology"}})
    assert outcome.match == "mapped"
    assert outcome.profile is not None
    assert outcome.profile.context is not None
    assert outcome.profile.context.domain == f"{CLINICAL}#Medicine"


@pytest.mark.requirement("IOA-7.1-4")
def test_references_without_a_mapping_are_no_match() -> None:
    outcome = negotiate({**RAD_PROFILE, "capabilityRefs": ["rad:report-summary", "rad:image-archive"]})
    assert broken(outcome) == [("I243", "/capabilityRefs/1")]


def test_unknown_ontology_and_unknown_alignment_are_named() -> None:
    assert broken(negotiate({**RAD_PROFILE, "ontologyId": "https://z.example/o"})) == [("I241", "/ontologyId")]
    assert broken(negotiate({**RAD_PROFILE, "alignmentRef": "https://z.example/a"})) == [("I242", "/alignmentRef/0")]
    other = negotiate({**RAD_PROFILE, "ontologyId": CS, "alignmentRef": ALIGNMENT})
    assert broken(other) == [("I242", "/alignmentRef/0")]
    assert broken(negotiate({**RAD_PROFILE, "ontologyVersion": "2.0"})) == [("I241", "/ontologyId")]


@pytest.mark.requirement("IOA-7.4-5")
def test_mapping_below_the_threshold_needs_a_person() -> None:
    assert broken(negotiate(RAD_PROFILE, threshold=0.92)) == [("I244", "/capabilityRefs/0")]
    assert negotiate(RAD_PROFILE, given=alignment(confirmed_by="operator:ada"), threshold=0.99).match == "mapped"


@pytest.mark.parametrize("claim", [{"confirmed_by": "ada"}, {"override": True}, {"justification": "review"}])
def test_confirmation_that_a_document_claims_does_not_count(claim: dict[str, Any]) -> None:
    rules = tuple(msgspec.structs.replace(rule, **claim) for rule in alignment().rules)
    poisoned = alignment(rules=rules)
    assert broken(negotiate(RAD_PROFILE, given=poisoned, threshold=0.92)) == [("I244", "/capabilityRefs/0")]
    critical = msgspec.structs.replace(OFFER, critical=True)
    assert {rule for rule, _ in broken(negotiate(RAD_PROFILE, critical, poisoned))} == {"I248"}


@pytest.mark.requirement("IOA-13-7")
def test_irreversible_calls_need_mappings_with_provenance() -> None:
    critical = msgspec.structs.replace(OFFER, critical=True)
    confirmed = alignment(confirmed_by="operator:ada")
    anonymous = msgspec.structs.replace(confirmed, provenance=None)
    assert negotiate(RAD_PROFILE, critical, confirmed).match == "mapped"
    outcome = negotiate(RAD_PROFILE, critical, anonymous)
    assert broken(outcome)[0] == ("I245", "/alignmentRef")
    assert outcome.verdict.status == "reject"
    assert negotiate(RAD_PROFILE, OFFER, anonymous).match == "mapped"
    assert negotiate(RAD_PROFILE, critical, anonymous, require_provenance=False).match == "mapped"


def test_several_mappings_are_resolved_in_the_configured_order() -> None:
    override = MappingRule(
        source=f"{RAD}#report-summary", target=f"{CLINICAL}#patient-lookup", confidence=0.8, override=True
    )
    known = alignment(rules=(*alignment().rules, override), confirmed_by="operator:ada")
    by_confidence = negotiate({**RAD_PROFILE, "intentRef": f"{CLINICAL}#summary-intent"}, OFFER, known)
    assert by_confidence.match == "mapped"
    offer = Offer((CLINICAL, CORE))
    first = negotiate(RAD_PROFILE, offer, known, conflict_order=("override", "confidence"), violations="renegotiate")
    assert broken(first) == [("I224", "/intentRef")]  # the override leads to a capability without this intent


@pytest.mark.parametrize(
    ("wanted", "match"), [("document-summarize", "direct"), ("note-summarize", "direct"), ("patient-lookup", "none")]
)
def test_endpoint_must_provide_what_the_profile_references(wanted: str, match: str) -> None:
    refs = [f"clinical:{wanted}", *([] if match == "direct" else ["clinical:note-summarize"])]
    offer = OFFER if match == "direct" else Offer((CLINICAL, CORE), (f"{CLINICAL}#other",))
    outcome = negotiate({**CLINICAL_PROFILE, "capabilityRefs": refs}, offer)
    assert outcome.match == match
    if match == "none":
        assert broken(outcome) == [("I246", "/capabilityRefs/0")]
        assert outcome.verdict.status == "reject"


@pytest.mark.requirement("IOA-11.3-1")
@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({}, "reject"),
        ({"violations": "renegotiate"}, "renegotiate"),
        ({"rules": {"I227": "renegotiate"}}, "renegotiate"),
    ],
)
def test_sense_of_another_domain_is_rejected_or_renegotiated_by_policy(settings: dict[str, Any], status: str) -> None:
    figure_9 = {
        "@context": ["https://ex.org/ctx", {"cs": f"{CS}#", "law": f"{LAW}#"}],
        "type": "ioa:SemanticProfile",
        "ontologyId": CORE,
        "ontologyVersion": "1.0",
        "capabilityRefs": ["cs:TechTranslation"],
        "intentRef": "cs:TranslateTechDoc",
        "profileContext": {
            "domain": "cs:ComputerScience",
            "termBindings": [{"term": "LLM", "sense": "law:MasterOfLaws"}],
        },
    }
    outcome = negotiate(figure_9, Offer((CORE,)), **settings)
    assert broken(outcome) == [("I227", "/profileContext/termBindings/0/sense")]
    assert outcome.document()["validation"] == {"status": status, "reason": "termBinding sense conflicts with domain"}


def test_document_has_what_a_peer_needs() -> None:
    translator = Translator([alignment()])
    found = translator.translate(f"{RAD}#report-summary", RAD, CLINICAL)
    assert found is not None
    used = UsedMapping(f"{RAD}#report-summary", found)
    told = SemanticOutcome(
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
    told = SemanticOutcome(match="none", explanation=(), verdict=verdict).document()
    assert told["violations"] == [
        {
            "rule": "I243",
            "path": "/intentRef",
            "value": "x:a",
            "message": "/intentRef is 'x:a', for which there is no mapping to 'y:'",
        }
    ]
    assert told["validation"]["status"] == "reject"
