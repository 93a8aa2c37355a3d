"""Discovery by meaning: subclasses, mappings, inputs and outputs, labels, and what callers may see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.meaning import ALIGNMENT, CLINICAL, RAD, alignment, snapshot
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.envelope.reader import parse
from bespeak.extensions.semantics.discovery import DiscoveryQuery, Found, MeaningIndex, read_wanted
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes


def providing(path: str, concept: str, *scopes: str) -> Endpoint:
    endpoint = make_endpoint("SUMMARIZE", path, echo, scopes=scopes)
    return replace(endpoint, semantic=replace(endpoint.semantic, concepts=(f"{CLINICAL}#{concept}",)))


NOTES, PATIENTS = providing("/note", "note-summarize"), providing("/patient", "patient-lookup", "patients:read")


def find(text: str, *, sensitive: tuple[str, ...] = (), who: Principal = ANONYMOUS, **more: Any) -> list[Found]:
    return MeaningIndex([NOTES, PATIENTS], snapshot(), sensitive).find(DiscoveryQuery(text, **more), who)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (f"{CLINICAL}#note-summarize", 1.0),
        (f"{CLINICAL}#document-summarize", 1.0),  # the endpoint provides a special case of it
        (f"{RAD}#report-summary", 0.91),
        ("radiology-report-summary", 0.91),
        ("clinical-note-summarize", 1.0),
    ],
)
def test_capability_is_found_by_subclass_mapping_and_label(text: str, score: float) -> None:
    [found] = find(text)
    assert (found.endpoint.path, found.score) == ("/note", score)


def test_general_capability_ranks_below_the_wanted_one() -> None:
    index = MeaningIndex([providing("/any", "document-summarize"), NOTES], snapshot())
    found = index.find(DiscoveryQuery(f"{CLINICAL}#note-summarize"), ANONYMOUS)
    assert [(one.endpoint.path, one.score) for one in found] == [("/note", 1.0), ("/any", 0.9)]


def test_inputs_and_outputs_exclude_what_cannot_be_used() -> None:
    assert find(f"{CLINICAL}#note-summarize", inputs=("text/plain",), outputs=("text/plain",))
    assert find(f"{CLINICAL}#note-summarize", inputs=("image/png",), outputs=("video/mp4",)) == []


def test_nothing_is_found_without_a_common_word_or_an_accepted_mapping() -> None:
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
    assert told(f"{CLINICAL}#note-summarize") == ("direct", 0.9)  # more general than what is wanted
    assert told("patient lookup desk") == ("direct", 0.6667)  # two words of three
    assert told(f"{RAD}#report-summary") == ("mapped", 0.819)


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
    assert profile is not None
    assert (profile.ontology_id, profile.ontology_version) == (CLINICAL, "2.1")
    assert profile.capability_refs == (f"{CLINICAL}#note-summarize",)
    assert (profile.intent_ref, profile.alignment_refs) == (f"{CLINICAL}#summary-intent", (ALIGNMENT,))
    assert profile.context is None
    [lookup] = find(f"{CLINICAL}#patient-lookup")
    assert "semantic" not in index.document(lookup)  # there is no intent to name


@pytest.mark.parametrize(
    ("criteria", "wanted"),
    [
        ("x", DiscoveryQuery("x")),
        ({"capability": "x", "inputs": "a/b"}, DiscoveryQuery("x", ("a/b",))),
        ({"capability": "x", "outputs": ["a/b", 7]}, DiscoveryQuery("x", (), ("a/b",))),
        ({"capability": 7}, None),
        ({}, None),
        (7, None),
    ],
)
def test_criteria_are_a_text_or_name_a_capability(criteria: Any, wanted: DiscoveryQuery | None) -> None:
    assert read_wanted(criteria) == wanted
