"""Payloads in any JSON-LD form are read, and hostile ones are violations with a place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from tests.cases import check_each
from tests.extensions.semantics.envelope.payloads import envelopes, odd
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_6, FIGURE_7, FIGURE_8, FIGURE_9
from tests.extensions.semantics.ontology.oracle import violated

from bespeak.contract.core_ontology import Namespace
from bespeak.extensions.semantics.envelope.reader import ClaimedValidation, EnvelopeReader, SemanticEnvelope, parse
from bespeak.extensions.semantics.ontology.contexts import core_context
from bespeak.extensions.semantics.profile import ProfileContext, Registration, SemanticProfile, TermBinding

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


def test_reserved_names_are_ignored_and_registrations_are_told_from_envelopes() -> None:
    document = FIGURE_5 | {"@context": [*FIGURE_5["@context"], {"x": "@future"}], "x": 1}
    assert parse(document).profile == parse(FIGURE_5).profile
    reader = EnvelopeReader()
    assert reader.is_registration(FIGURE_6)
    for other in (FIGURE_5, FIGURE_8, {}, None):
        assert not reader.is_registration(other)


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


CS = "https://ex.org/onto/cs#"


def test_every_member_of_the_figures_is_read() -> None:
    profile = SemanticProfile(
        ontology_id="https://ex.org/onto/agent-core",
        ontology_version="1.0",
        capability_refs=(f"{CS}TechTranslation",),
        intent_ref=f"{CS}TranslateTechDoc",
        context=ProfileContext(
            domain=f"{CS}ComputerScience",
            term_bindings=(TermBinding("LLM", f"{CS}LargeLanguageModel"),),
            source_lang="zh",
            target_lang="en",
        ),
    )
    assert parse(FIGURE_8["semantic"]).profile == profile
    clinical = parse(FIGURE_7 | {"id": "clinical:p1", "profileVersion": 3}).profile
    assert clinical.alignment_refs == ("https://ex.org/align/X-Y-2026",)
    assert (clinical.id, clinical.profile_version) == ("https://y.org/onto/clinical#p1", "3")


def test_validation_of_a_peer_is_read_inside_the_envelope() -> None:
    wanted = ClaimedValidation("reject", "termBinding sense conflicts with domain")
    assert parse(FIGURE_9["semantic"]).validation == wanted
    assert parse(FIGURE_5).validation is None


NOTHING: Any = object()
CASES: list[tuple[str, Any, tuple[str, str]]] = [
    ("type", NOTHING, ("I203", "/type")),
    ("type", [], ("I203", "/type")),
    ("type", "ioa:Intent", ("I203", "/type")),
    ("ontologyId", NOTHING, ("I204", "/ontologyId")),
    ("ontologyId", "agent-core", ("I204", "/ontologyId")),
    ("ontologyId", ["x:a", "x:b"], ("I204", "/ontologyId")),
    ("ontologyId", 7, ("I204", "/ontologyId")),
    ("ontologyId", "https://ex.org/a\x00b", ("I204", "/ontologyId")),
    ("ontologyVersion", NOTHING, ("I205", "/ontologyVersion")),
    ("ontologyVersion", "", ("I205", "/ontologyVersion")),
    ("ontologyVersion", True, ("I205", "/ontologyVersion")),
    ("ontologyVersion", {"@id": "x:y"}, ("I205", "/ontologyVersion")),
    ("capabilityRefs", NOTHING, ("I206", "/capabilityRefs")),
    ("capabilityRefs", [], ("I206", "/capabilityRefs")),
    ("capabilityRefs", ["cs:X", 7], ("I206", "/capabilityRefs/1")),
    ("capabilityRefs", ["cs:X", "_:b0"], ("I206", "/capabilityRefs/1")),
    ("intentRef", NOTHING, ("I207", "/intentRef")),
    ("intentRef", "cs:a\u202e b", ("I207", "/intentRef")),
    ("intentRef", {"@list": ["cs:X"]}, ("I207", "/intentRef")),
    ("profileVersion", ["1", "2"], ("I208", "/profileVersion")),
    ("alignmentRef", "not an iri", ("I208", "/alignmentRef/0")),
    ("id", "relative", ("I208", "/id")),
    ("profileContext", 7, ("I208", "/profileContext")),
    ("profileContext", {"domain": 7}, ("I208", "/profileContext/domain")),
    ("profileContext", {"termBindings": ["LLM", 7]}, ("I208", "/profileContext/termBindings/1")),
    ("profileContext", {"termBindings": [{"term": "LLM"}]}, ("I208", "/profileContext/termBindings/0/sense")),
    ("validation", 7, ("I208", "/validation")),
    ("@id", {"x": 1}, ("I208", "")),
]


@pytest.mark.requirement("IOA-5.3-1", "IOA-5.3-2", "IOA-6.2-2", "IOA-6.2-3", "IOA-6.2-4", "IOA-6.2-5", "IOA-6.2-6")
def test_each_fault_has_its_rule_and_path() -> None:
    def check(case: tuple[str, Any, tuple[str, str]]) -> None:
        name, value, wanted = case
        document = {key: one for key, one in FIGURE_5.items() if key != name}
        found = parse(document if value is NOTHING else document | {name: value})
        assert wanted in {(one.rule, one.path) for one in found.violations}
        assert all(one.message and one.reason for one in found.violations)

    check_each(CASES, check)


def test_same_value_twice_is_one_value() -> None:
    twice = FIGURE_5 | {
        "ontologyId": [FIGURE_5["ontologyId"]] * 2,
        "capabilityRefs": FIGURE_5["capabilityRefs"] * 2,
        "ontologyVersion": ["1.0", "1.0"],
    }
    assert parse(twice).violations == ()
    assert parse(twice).profile == parse(FIGURE_5).profile


def test_values_in_violations_are_short() -> None:
    found = parse(FIGURE_5 | {"intentRef": "x" * 10_000, "ontologyId": ["y"] * 200}).violations
    assert max(len(str(one.value)) + len(one.message) for one in found) < 1_000


MEMBERS = {name: value for name, value in FIGURE_6.items() if name != "@context"}


def read(**members: Any) -> Registration:
    return EnvelopeReader().parse_registration({"@context": FIGURE_6["@context"], **members})


def found(registration: Registration) -> set[tuple[str, str]]:
    return {(one.rule, one.path) for one in registration.violations}


def test_figure_6_is_read() -> None:
    registration = read(**MEMBERS)
    assert registration.violations == ()
    (term,) = registration.capabilities
    assert (term.iri, term.labels) == (f"{CS}TechTranslation", ("Technical Document Translation",))
    assert (term.inputs, term.outputs) == (("text/plain",), ("text/plain",))


@pytest.mark.requirement("IOA-6.3-1", "IOA-6.3-2")
def test_missing_members_and_values_of_another_kind_are_found() -> None:
    for member, wanted in (("id", ("I212", "/id")), ("inputs", ("I213", "/inputs")), ("outputs", ("I213", "/outputs"))):
        document = {name: value for name, value in MEMBERS.items() if name != member}
        assert found(read(**document)) == {wanted}
        shaped = violated({"@context": FIGURE_6["@context"], **document}, registration=True)
        assert shaped == {wanted[0]}
    assert found(read(**MEMBERS | {"id": "relative"})) == {("I212", "/id")}
    assert found(read(**MEMBERS | {"inputs": [True]})) == {("I213", "/inputs/0")}
    assert found(read(**MEMBERS | {"label": {"@id": "cs:X"}})) == {("I208", "/label/0")}
    assert found(read(**MEMBERS | {"type": "ioa:Intent"})) == {("I211", "/type")}
    assert found(read(**MEMBERS | {"type": []})) == {("I211", "/type")}


def test_schemas_are_json_literals_and_an_agent_can_only_have_capabilities() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    (term,) = read(**MEMBERS | {"inputs": ["application/json", {"@type": "@json", "@value": schema}]}).capabilities
    assert term.inputs[0] == "application/json"
    assert msgspec.json.decode(term.inputs[1]) == schema
    agent = {"id": "cs:robot", "type": "ioa:Agent", "hasCapability": [{"id": "cs:Goal", "type": "ioa:Intent"}]}
    assert found(read(**{"@graph": [MEMBERS, agent]})) == {("I221", "/@graph/1/hasCapability/0")}


def test_several_capabilities_and_their_agents_are_read() -> None:
    second = MEMBERS | {"id": "cs:Other", "providedBy": "cs:robot"}
    agent = {"id": "cs:robot", "type": "ioa:Agent", "hasCapability": ["cs:TechTranslation", "cs:Elsewhere"]}
    registration = read(**{"@graph": [MEMBERS, second, agent]})
    assert registration.violations == ()
    assert [one.iri for one in registration.capabilities] == [f"{CS}TechTranslation", f"{CS}Other"]
    assert registration.agents == {f"{CS}robot": (f"{CS}Other", f"{CS}TechTranslation", f"{CS}Elsewhere")}
    nested = read(id="cs:robot", type="ioa:Agent", hasCapability=[MEMBERS])
    assert nested.capabilities == registration.capabilities[:1]
