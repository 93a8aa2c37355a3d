"""Payloads in any JSON-LD form are read, and hostile ones are violations with a place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.cases import check_each
from tests.documents.envelope.payloads import envelopes, odd
from tests.documents.ontology.figures import FIGURE_5, FIGURE_6, FIGURE_8

from bespeak.contract.ontology.core import Namespace
from bespeak.documents.envelope.reader import EnvelopeReader, SemanticEnvelope, parse
from bespeak.documents.ontology.contexts import core_context

IOA = "https://ex.org/ioa/semantic#"


def rules(envelope: SemanticEnvelope) -> set[tuple[str, str]]:
    return {(one.rule, one.path) for one in envelope.violations}


def test_other_forms_of_one_envelope_mean_the_same() -> None:
    wanted = parse(FIGURE_5).profile
    assert wanted is not None
    inline = FIGURE_5 | {"@context": [core_context(), {"cs": "https://ex.org/onto/cs#"}]}
    listed = {"@context": FIGURE_5["@context"], "@graph": [{k: v for k, v in FIGURE_5.items() if k != "@context"}]}
    written_out = {
        "@context": {"ioa": IOA},
        "@type": "ioa:SemanticProfile",
        "ioa:ontologyId": {"@id": "https://ex.org/onto/agent-core"},
        f"{IOA}ontologyVersion": [{"@value": "1.0"}],
        "ioa:capabilityRefs": {"@id": "https://ex.org/onto/cs#TechTranslation"},
        "ioa:intentRef": {"@id": "https://ex.org/onto/cs#TranslateTechDoc"},
        "ioa:profileContext": {
            "ioa:domain": {"@id": "https://ex.org/onto/cs#ComputerScience"},
            "ioa:termBindings": [
                {"ioa:term": "LLM", "ioa:sense": {"@id": "https://ex.org/onto/cs#LargeLanguageModel"}}
            ],
        },
    }
    for form in (inline, listed, written_out, FIGURE_5 | {"type": ["SemanticProfile"], "cs:note": "extension"}):
        assert parse(form).violations == ()
        assert parse(form).profile == wanted


def test_base_and_registered_contexts_are_configurable() -> None:
    own = Namespace("https://acme.example/meaning/")
    reader = EnvelopeReader(own, {"https://acme.example/more": {"cs": "https://ex.org/onto/cs#"}})
    document = FIGURE_5 | {"@context": [own.context, "https://acme.example/more"]}
    assert reader.parse(document).profile == parse(FIGURE_5).profile
    assert rules(reader.parse(FIGURE_5)) == {("I202", "/@context/0")}


@pytest.mark.requirement("IOA-6.2-1")
def test_context_is_needed_and_defines_the_core_terms() -> None:
    without = {name: value for name, value in FIGURE_5.items() if name != "@context"}
    empty: tuple[Any, ...] = ({}, [], {"x": "y:z#"})
    cases: list[Any] = [without, [], "text", 5, None, *(FIGURE_5 | {"@context": one} for one in empty)]
    for case in cases:
        envelope = parse(case)
        assert rules(envelope) == {("I201", "/@context")}
        assert envelope.profile is None


HOSTILE: list[tuple[Any, tuple[str, str]]] = [
    ({"a": "b:x", "b": "a:y"}, ("I201", "/@context")),
    ("https://evil.example/ctx", ("I202", "/@context/2")),
    ({"@import": "https://evil.example/ctx"}, ("I104", "/@context/2/@import")),
    ({"@type": "@id"}, ("I105", "/@context/2/@type")),
    ({"type": "https://ex.org/other"}, ("I105", "/@context/2/type")),
    ({"intentRef": "https://ex.org/other"}, ("I105", "/@context/2/intentRef")),
    ({"x": {"@id": "https://ex.org/x", "@context": {}}}, ("I105", "/@context/2/x")),
    (None, ("I105", "/@context/2")),
    (7, ("I105", "/@context/2")),
    ({f"t{number}": "https://ex.org/x#" for number in range(300)}, ("I105", "/@context/2")),
    ({"x": "https://ex.org/" + "x" * 70_000}, ("I209", "/@context")),
]


def test_hostile_contexts_are_refused_at_their_place() -> None:
    def check(case: tuple[Any, tuple[str, str]]) -> None:
        envelope = parse(FIGURE_5 | {"@context": [*FIGURE_5["@context"], case[0]]})
        assert rules(envelope) == {case[1]}
        assert envelope.profile is None
        nested = parse(FIGURE_5 | {"profileContext": {"@context": case[0]}})
        assert nested.violations

    check_each(HOSTILE, check, lambda case: str(case[0])[:60])


def test_reserved_names_in_a_context_are_ignored_without_a_warning() -> None:
    document = FIGURE_5 | {"@context": [*FIGURE_5["@context"], {"x": "@future"}], "x": 1}
    assert parse(document).profile == parse(FIGURE_5).profile


def test_type_can_have_another_name_but_no_other_meaning() -> None:
    kind = FIGURE_5 | {"@context": [*FIGURE_5["@context"], {"kind": "@type"}], "kind": FIGURE_5["type"]}
    del kind["type"]
    assert parse(kind).profile == parse(FIGURE_5).profile
    both = parse(kind | {"type": "ioa:Intent"})
    # Both names count: a profile that is also something else stays a profile.
    assert both.profile == parse(FIGURE_5).profile


def test_meanings_of_contexts_are_kept_within_bounds() -> None:
    reader = EnvelopeReader()
    for number in range(300):
        context = [*FIGURE_5["@context"], {f"p{number}": "https://ex.org/p#"}]
        assert reader.parse(FIGURE_5 | {"@context": context}).violations == ()
    assert reader._compiled.cache_info().currsize <= 256
    large = [*FIGURE_5["@context"], {"x": "https://ex.org/" + "x" * 5_000}]
    before = reader._compiled.cache_info().currsize
    reader.parse(FIGURE_5 | {"@context": large})
    assert reader._compiled.cache_info().currsize == before


def test_several_profiles_in_one_payload_are_ambiguous() -> None:
    members = {name: value for name, value in FIGURE_5.items() if name != "@context"}
    both = {"@context": FIGURE_5["@context"], "@graph": [members, members | {"id": "cs:second"}]}
    assert rules(parse(both)) == {("I203", "")}
    beside = {"@context": FIGURE_5["@context"], "@graph": [members, {"id": "cs:X", "label": "x"}]}
    assert parse(beside).violations == ()


def test_registrations_are_told_from_envelopes() -> None:
    reader = EnvelopeReader()
    assert reader.is_registration(FIGURE_6)
    for other in (FIGURE_5, FIGURE_8, {}, None):
        assert not reader.is_registration(other)


@settings(max_examples=200, deadline=None)
@given(odd | envelopes)
def test_any_value_is_an_envelope_or_has_violations(value: Any) -> None:
    reader = EnvelopeReader()
    envelope = reader.parse(value)
    assert envelope.violations or (envelope.profile is not None and envelope.profile.capability_refs)
    reader.parse_registration(value)


@pytest.mark.parametrize("value", [{"@context": "\ud800"}, {"@context": {1, 2}}, FIGURE_5 | {"x": "\ud800"}])
def test_what_cannot_be_json_is_a_violation(value: Any) -> None:
    assert parse(value).violations
