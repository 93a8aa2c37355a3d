"""Outcomes of a negotiation: direct, mapped or none, each with its reasons and the way out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.meaning import ALIGNMENT, CLINICAL, CLINICAL_PROFILE, CS, LAW, RAD, RAD_PROFILE, alignment, snapshot
from tests.service import build

from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule
from bespeak.extensions.semantics.calls import refuse_change, refuse_missing, refuse_outcome, refuse_unknown
from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.negotiation import SemanticNegotiation, SemanticOutcome, ServiceOffer
from bespeak.extensions.semantics.profile import Verdict, Violation
from bespeak.extensions.semantics.rules import NOT_PROVIDED, UNCOVERED
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.extensions.semantics.translation import Translator, UsedMapping
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call

CORE = "https://ex.org/onto/agent-core"
OFFER = ServiceOffer((CLINICAL, CORE), (f"{CLINICAL}#note-summarize",))


def negotiate(
    document: dict[str, Any], offer: ServiceOffer = OFFER, given: Alignment | None = None, **settings: Any
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
    assert outcome.profile.capability_refs == (f"{CLINICAL}#note-summarize",)
    assert outcome.profile.intent_ref == f"{CLINICAL}#summary-intent"
    assert {one.translation.steps[0].alignment for one in outcome.mappings} == {ALIGNMENT}
    assert any("note-summarize" in sentence and "0.91" in sentence for sentence in outcome.explanation)


def test_alignment_is_turned_around_for_the_other_side_and_translates_domains() -> None:
    outcome = negotiate(CLINICAL_PROFILE, ServiceOffer((RAD, CORE), (f"{RAD}#report-summary",)))
    assert outcome.match == "mapped"
    assert outcome.profile.capability_refs == (f"{RAD}#report-summary",)
    with_domain = negotiate({**RAD_PROFILE, "profileContext": {"domain": "rad:Radiology"}})
    assert (with_domain.match, with_domain.profile.context.domain) == ("mapped", f"{CLINICAL}#Medicine")


@pytest.mark.requirement("IOA-7.1-4", "IOA-7.4-5")
def test_missing_mappings_are_no_match_and_doubtful_ones_need_a_person() -> None:
    outcome = negotiate({**RAD_PROFILE, "capabilityRefs": ["rad:report-summary", "rad:image-archive"]})
    assert broken(outcome) == [("I243", "/capabilityRefs/1")]
    assert broken(negotiate(RAD_PROFILE, threshold=0.92)) == [("I244", "/capabilityRefs/0")]
    assert negotiate(RAD_PROFILE, given=alignment(confirmed_by="operator:ada"), threshold=0.99).match == "mapped"


def test_unknown_ontology_and_unknown_alignment_are_named() -> None:
    assert broken(negotiate({**RAD_PROFILE, "ontologyId": "https://z.example/o"})) == [("I241", "/ontologyId")]
    assert broken(negotiate({**RAD_PROFILE, "alignmentRef": "https://z.example/a"})) == [("I242", "/alignmentRef/0")]
    other = negotiate({**RAD_PROFILE, "ontologyId": CS, "alignmentRef": ALIGNMENT})
    assert broken(other) == [("I242", "/alignmentRef/0")]
    assert broken(negotiate({**RAD_PROFILE, "ontologyVersion": "2.0"})) == [("I241", "/ontologyId")]


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
    offer = ServiceOffer((CLINICAL, CORE))
    first = negotiate(RAD_PROFILE, offer, known, conflict_order=("override", "confidence"), violations="renegotiate")
    assert broken(first) == [("I224", "/intentRef")]  # the override leads to a capability without this intent


@pytest.mark.parametrize(
    ("wanted", "match"), [("document-summarize", "direct"), ("note-summarize", "direct"), ("patient-lookup", "none")]
)
def test_endpoint_must_provide_what_the_profile_references(wanted: str, match: str) -> None:
    refs = [f"clinical:{wanted}", *([] if match == "direct" else ["clinical:note-summarize"])]
    offer = OFFER if match == "direct" else ServiceOffer((CLINICAL, CORE), (f"{CLINICAL}#other",))
    outcome = negotiate({**CLINICAL_PROFILE, "capabilityRefs": refs}, offer)
    assert outcome.match == match
    if match == "none":
        assert broken(outcome) == [("I246", "/capabilityRefs/0"), ("I246", "/capabilityRefs/1")]
        assert outcome.verdict.status == "reject"


@pytest.mark.requirement("IOA-11.3-1")
@rows(
    "settings, status",
    ({}, "reject"),
    ({"violations": "renegotiate"}, "renegotiate"),
    ({"rules": {"I227": "renegotiate"}}, "renegotiate"),
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
    outcome = negotiate(figure_9, ServiceOffer((CORE,)), **settings)
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
    head = {"match": "mapped", "status": "accept", "confidence": 0.91, "ontologyId": "y:", "ontologyVersion": "1.0"}
    assert told == {**head, "mappings": [used.document()], "explanation": ["a"]}


def test_document_of_a_failure_names_rule_path_value_and_message() -> None:
    verdict = Verdict("reject", (Violation.of(UNCOVERED, "/intentRef", "x:a", "y:"),))
    told = SemanticOutcome(match="none", explanation=(), verdict=verdict).document()
    message = "/intentRef is 'x:a', for which there is no mapping to 'y:'"
    assert told["violations"] == [{"rule": "I243", "path": "/intentRef", "value": "x:a", "message": message}]
    assert told["validation"]["status"] == "reject"


def call() -> Call:
    return Call(
        Request("BOOK", "/room", "", {"task-id": "t-1"}, b"", Connection()),
        build(semantic=SemanticSettings()).dispatcher.server,
    )


def test_status_follows_from_the_verdict() -> None:
    broken = (Violation.of(NOT_PROVIDED, "/capabilityRefs/0", "x:a", "x:b"),)
    rejected = refuse_outcome(
        call(), SemanticOutcome(match="none", explanation=(), verdict=Verdict("reject", broken)), ()
    )
    assert (rejected.status, rejected.code) == (422, "semantic-rejected")
    assert rejected.message == "/capabilityRefs/0 is 'x:a'; the endpoint provides 'x:b'. " + (
        "Correct the semantic profile and repeat the call."
    )
    assert "control" not in rejected.details
    open_ = refuse_outcome(
        call(), SemanticOutcome(match="none", explanation=(), verdict=Verdict("renegotiate", broken)), ("x:o",)
    )
    assert (open_.status, open_.code, open_.details["ontologies"]) == (409, "semantic-renegotiation", ["x:o"])


def test_each_refusal_says_what_to_do() -> None:
    assert "PROPOSE the new profile" in refuse_change(call(), "d").message
    assert "Send an envelope" in refuse_missing(call(), ()).message
    assert refuse_missing(call(), ()).details["task_id"] == "t-1"
    assert "PROPOSE the profile again" in refuse_unknown("x" * 500).message
    assert len(refuse_unknown("x" * 500).message) < 250
