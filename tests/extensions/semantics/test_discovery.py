"""Discovery by meaning, and translation of profiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.meaning import ALIGNMENT, CLINICAL, RAD, RAD_PROFILE, alignment, ontology, snapshot
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Policy
from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.layer import DiscoveryQuery, FoundEndpoint, MeaningIndex, read_wanted
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.extensions.semantics.translation import Mappings, ProfileTranslation
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes


def providing(path: str, concept: str, *scopes: str) -> Endpoint:
    endpoint = make_endpoint("SUMMARIZE", path, echo, scopes=scopes)
    return replace(endpoint, semantic=replace(endpoint.semantic, concepts=(f"{CLINICAL}#{concept}",)))


NOTES, PATIENTS = providing("/note", "note-summarize"), providing("/patient", "patient-lookup", "patients:read")


def find(text: str, *, sensitive: tuple[str, ...] = (), who: Principal = ANONYMOUS, **more: Any) -> list[FoundEndpoint]:
    return MeaningIndex([NOTES, PATIENTS], snapshot(), sensitive).find(DiscoveryQuery(text, **more), who)


@rows(
    "text, score",
    (f"{CLINICAL}#note-summarize", 1.0),
    (f"{CLINICAL}#document-summarize", 1.0),  # the endpoint provides a special case of it
    (f"{RAD}#report-summary", 0.91),
    ("radiology-report-summary", 0.91),
    ("clinical-note-summarize", 1.0),
)
def test_capability_is_found_by_subclass_mapping_and_label(text: str, score: float) -> None:
    [found] = find(text)
    assert (found.endpoint.path, found.score) == ("/note", score)


def test_general_unusable_and_unrelated_capabilities_rank_below_or_are_excluded() -> None:
    index = MeaningIndex([providing("/any", "document-summarize"), NOTES], snapshot())
    found = index.find(DiscoveryQuery(f"{CLINICAL}#note-summarize"), ANONYMOUS)
    assert [(one.endpoint.path, one.score) for one in found] == [("/note", 1.0)]
    assert find(f"{CLINICAL}#note-summarize", inputs=("text/plain",), outputs=("text/plain",))
    assert find(f"{CLINICAL}#note-summarize", inputs=("image/png",), outputs=("video/mp4",)) == []
    assert find("book a room") == []
    assert find(f"{RAD}#image-archive") == []
    index = MeaningIndex([NOTES], snapshot(alignment(rules=())))
    assert index.find(DiscoveryQuery(f"{RAD}#report-summary"), ANONYMOUS) == []


def test_confidence_is_that_of_name_fit_and_mapping_together() -> None:
    index = MeaningIndex([providing("/any", "document-summarize"), PATIENTS], snapshot())

    def told(text: str) -> tuple[str, float]:
        [found] = index.find(DiscoveryQuery(text), ANONYMOUS)
        document = index.document(found)
        return document["match"], document["confidence"]

    assert told(f"{CLINICAL}#document-summarize") == ("direct", 1.0)
    # What is more general than what is wanted may not do it.
    assert index.find(DiscoveryQuery(f"{CLINICAL}#note-summarize"), ANONYMOUS) == []
    index = MeaningIndex([NOTES, PATIENTS], snapshot())
    assert told("patient lookup desk") == ("direct", 0.6667)  # two words of three
    assert told(f"{RAD}#report-summary") == ("mapped", 0.91)


@pytest.mark.requirement("IOA-13-4")
def test_sensitive_capability_is_shown_to_callers_with_its_scopes_only() -> None:
    iri = f"{CLINICAL}#patient-lookup"
    agent = Principal(agent_id="a" * 64)
    doctor = Principal(agent_id="a" * 64, scopes=Scopes(("patients:read",)))
    assert [one.endpoint.path for one in find(iri)] == ["/patient"]
    assert find(iri, sensitive=(iri,)) == find(iri, sensitive=(iri,), who=agent) == []
    assert len(find(iri, sensitive=(iri,), who=doctor)) == 1


@pytest.mark.requirement("IOA-8-2", "IOA-13-1", "IOA-12-1")
def test_answer_has_the_profile_of_figure_7_and_no_more() -> None:
    index = MeaningIndex([NOTES], snapshot())
    [found] = index.find(DiscoveryQuery(f"{RAD}#report-summary"), ANONYMOUS)
    told = index.document(found)
    assert (told["match"], told["confidence"], told["relevance"]) == ("mapped", 0.91, 0.91)
    assert sorted(told) == ["confidence", "description", "kind", "match", "method", "path", "relevance", "semantic"]
    profile = parse(told["semantic"]).profile
    assert (profile.ontology_id, profile.ontology_version) == (CLINICAL, "2.1")
    assert profile.capability_refs == (f"{CLINICAL}#note-summarize",)
    assert (profile.intent_ref, profile.alignment_refs) == (f"{CLINICAL}#summary-intent", (ALIGNMENT,))
    assert profile.context is None
    [lookup] = find(f"{CLINICAL}#patient-lookup")
    assert "semantic" not in index.document(lookup)  # there is no intent to name


@rows(
    "criteria, wanted",
    ("x", DiscoveryQuery("x")),
    ({"capability": "x", "inputs": "a/b"}, DiscoveryQuery("x", ("a/b",))),
    ({"capability": "x", "outputs": ["a/b", 7]}, DiscoveryQuery("x", (), ("a/b",))),
    ({"capability": 7}, None),
    ({}, None),
    (7, None),
)
def test_criteria_are_a_text_or_name_a_capability(criteria: Any, wanted: DiscoveryQuery | None) -> None:
    assert read_wanted(criteria) == wanted


SUMMARY, NOTE = f"{RAD}#report-summary", f"{CLINICAL}#note-summarize"


def translate(*alignments: Alignment, **policy: Any) -> tuple[ProfileTranslation, Mappings]:
    mappings = Mappings(alignments, Policy(**policy))
    profile = parse(RAD_PROFILE).profile
    assert profile is not None
    ids = [one.id for one in alignments]
    translation = ProfileTranslation(mappings, ids, ontology("clinical"), lambda _: [RAD])
    translation.translate(profile)
    return translation, mappings


def test_equal_target_comes_before_a_narrower_one_and_a_broader_one_never() -> None:
    below = MappingRule(source=SUMMARY, target=f"{CLINICAL}#document-summarize", relation="narrower", confidence=1.0)
    translation, _ = translate(alignment(rules=(below, *alignment().rules)))
    assert translation.used[SUMMARY].translation.iri == NOTE
    assert translation.used[SUMMARY].document() == {
        "from": SUMMARY,
        "to": NOTE,
        "relation": "equivalent",
        "confidence": 0.91,
        "alignmentRef": "https://ex.org/align/X-Y-2026",
    }
    alone, _ = translate(alignment(rules=(below, alignment().rules[1])))
    assert alone.used[SUMMARY].translation.relation == "narrower"
    above = msgspec.structs.replace(below, relation="broader")
    refused, _ = translate(alignment(rules=(above, alignment().rules[1])))
    assert [one.rule for one in refused.broken] == ["I243"]


def test_mappings_are_named_with_confidence_and_origin_unless_undeclared() -> None:
    lost = MappingRule(source=SUMMARY, target=f"{CLINICAL}#gone", confidence=1.0)
    translation, _ = translate(alignment(rules=(lost,)))
    assert [one.rule for one in translation.broken] == ["I243", "I243"]
    translation, mappings = translate(alignment(), threshold=0.92)
    assert [(one.rule, one.path) for one in translation.broken] == [("I244", "/capabilityRefs/0")]
    assert mappings.doubtful[SUMMARY] == 0.91
    assert f"{RAD}#summarize-report" not in mappings.doubtful
    known, mappings = translate(alignment())
    assert not mappings.is_anonymous(known.used[SUMMARY].translation)
    unknown, mappings = translate(alignment(provenance=None))
    assert mappings.is_anonymous(unknown.used[SUMMARY].translation)


def test_several_steps_must_be_certain_enough_together() -> None:
    middle = OntologyRef("https://m.example/o", "1.0")
    first = Alignment(
        id="x:1",
        source=OntologyRef(RAD, "1.0"),
        target=middle,
        rules=(MappingRule(source=SUMMARY, target="https://m.example/o#s", confidence=0.8),),
    )
    second = Alignment(
        id="x:2",
        source=middle,
        target=OntologyRef(CLINICAL, "2.1"),
        rules=(MappingRule(source="https://m.example/o#s", target=NOTE, confidence=0.85),),
    )
    doubtful, _ = translate(first, second, threshold=0.75)
    assert [one.rule for one in doubtful.broken] == ["I244", "I243"]
    certain, _ = translate(first, second, threshold=0.6)
    assert certain.used[SUMMARY].translation.iri == NOTE
    assert certain.used[SUMMARY].document()["alignmentRef"] == ["x:1", "x:2"]
    assert certain.used[SUMMARY].document()["confidence"] == pytest.approx(0.68)


def test_translators_with_a_part_of_the_alignments_are_bounded() -> None:
    alignments = [msgspec.structs.replace(alignment(), id=f"x:{number}") for number in range(40)]
    mappings = Mappings(alignments, Policy())
    assert mappings.translator(["x:1"]) is mappings.translator(["x:1"])
    for one in alignments:
        assert mappings.translator([one.id]).translate(SUMMARY, RAD, CLINICAL) is not None
