"""The table of the core ontology names every class and property of the draft with its level."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.contract.core_ontology import CLASSES, DEFAULT, MOST_IRI, PROPERTIES, Namespace, is_iri


@pytest.mark.requirement("IOA-5-1", "IOA-5.1-1")
def test_required_and_optional_classes_are_those_of_the_draft() -> None:
    levels = {name: one.level for name, one in CLASSES.items() if one.level in ("required", "optional")}
    required = ("Agent", "Capability", "Intent", "Task", "Context", "SemanticProfile")
    assert levels == dict.fromkeys(required, "required") | dict.fromkeys(
        ("Skill", "Resource", "Constraint"), "optional"
    )


@pytest.mark.requirement("IOA-5.2-1", "IOA-5.2-2")
def test_required_and_recommended_properties_relate_the_classes_of_the_draft() -> None:
    found = {
        (name, one.domains[0], one.range, one.level)
        for name, one in PROPERTIES.items()
        if one.section == "5.2"
    }  # fmt: skip
    assert found == {
        ("hasCapability", "Agent", "Capability", "required"),
        ("hasIntent", "Task", "Intent", "required"),
        ("hasContext", "Task", "Context", "required"),
        ("requiresCapability", "Task", "Capability", "required"),
        ("providedBy", "Capability", "Agent", "required"),
        ("hasProfile", "Message", "SemanticProfile", "required"),
        ("ontologyId", "SemanticProfile", "", "required"),
        ("ontologyVersion", "SemanticProfile", "", "required"),
        ("profileVersion", "SemanticProfile", "", "recommended"),
        ("alignmentRef", "SemanticProfile", "", "recommended"),
        ("profileContext", "SemanticProfile", "Context", "recommended"),
    }


def test_properties_of_examples_are_marked_and_every_property_names_classes_of_the_table() -> None:
    used = "inDomain abbr preferredAbbr appliesToDomain domain termBindings term sense sourceLang targetLang inputs"
    assert {PROPERTIES[name].level for name in used.split()} == {"example"}
    assert {CLASSES[name].level for name in ("Domain", "Concept", "Message")} == {"example"}
    assert PROPERTIES["requiresCapability"].domains == ("Task", "Intent")
    for one in PROPERTIES.values():
        assert {*one.domains, one.range} - {""} <= CLASSES.keys(), one.name
        assert not one.inverse or PROPERTIES[one.inverse].inverse == one.name


def test_default_names_are_those_of_the_draft_and_others_follow_a_configured_base() -> None:
    assert DEFAULT("Agent") == "https://ex.org/ioa/semantic#Agent"
    assert DEFAULT.context == "https://ex.org/ctx"
    assert DEFAULT.name_of("https://ex.org/ioa/semantic#Agent") == "Agent"
    assert DEFAULT.name_of("https://ex.org/onto/cs#Agent") == ""
    here = Namespace("https://acme.example/meaning/")
    assert here("Agent") == "https://acme.example/meaning/ioa/semantic#Agent"
    assert here.context == "https://acme.example/meaning/ctx"


@pytest.mark.parametrize("text", ["https://ex.org/onto/cs#LLM", "urn:x:y", "https://ex.org/straße", "tag:a@b,2026:c"])
def test_absolute_iris_are_valid(text: str) -> None:
    assert is_iri(text)


@rows(
    "text",
    *(
        "",
        "cs",
        "#LLM",
        "/onto",
        "https:",
        "1x:y",
        "https://ex.org/a b",
        "https://ex.org/\x00",
        "https://ex.org/\n",
    ),
    *("https://ex.org/%0d%0a", "https://ex.org/%7F", "https://ex.org/\x9b", "https://ex.org/<a>", "a:\ud800"),
    *("https://ex.org/" + "x" * MOST_IRI, "https://ex.org/\u2028"),
)
def test_relative_hostile_and_endless_iris_are_not_valid(text: str) -> None:
    assert not is_iri(text)
