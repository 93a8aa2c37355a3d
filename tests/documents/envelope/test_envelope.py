"""Members of an envelope: what is missing or of another kind is a violation at its path (IoA 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import check_each
from tests.documents.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

from bespeak.contract.ontology.profile import ProfileContext, SemanticProfile, TermBinding
from bespeak.documents.envelope.reader import Validation, parse

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
    assert clinical is not None
    assert clinical.alignment_refs == ("https://ex.org/align/X-Y-2026",)
    assert (clinical.id, clinical.profile_version) == ("https://y.org/onto/clinical#p1", "3")


def test_validation_of_a_peer_is_read_inside_the_envelope() -> None:
    wanted = Validation("reject", "termBinding sense conflicts with domain")
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
