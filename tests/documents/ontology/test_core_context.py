"""The base context means the same to every JSON-LD processor, and cannot be redefined."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pyld import jsonld
from tests.documents.ontology.figures import FIGURE_5, FIGURE_10

from bespeak.contract.ontology.core import CLASSES, PROPERTIES, Namespace
from bespeak.documents.ontology.contexts import core_context, shipped_contexts

IOA = "https://ex.org/ioa/semantic#"


def expand(document: dict[str, Any]) -> Any:
    document = copy.deepcopy(document)
    contexts = document.get("@context", [])
    document["@context"] = [shipped_contexts().get(one, one) if isinstance(one, str) else one for one in contexts]
    [expanded] = jsonld.expand(document)
    return expanded


@pytest.mark.requirement("IOA-6.1-1")
def test_terms_of_figure_5_expand_to_the_core() -> None:
    expanded = expand(FIGURE_5)
    assert expanded["@type"] == [f"{IOA}SemanticProfile"]
    assert expanded[f"{IOA}capabilityRefs"] == [{"@id": "https://ex.org/onto/cs#TechTranslation"}]
    [context] = expanded[f"{IOA}profileContext"]
    assert context[f"{IOA}domain"] == [{"@id": "https://ex.org/onto/cs#ComputerScience"}]
    [binding] = context[f"{IOA}termBindings"]
    assert binding[f"{IOA}sense"] == [{"@id": "https://ex.org/onto/cs#LargeLanguageModel"}]
    assert binding[f"{IOA}term"] == [{"@value": "LLM"}]


def test_alignment_of_figure_10_expands_to_the_core() -> None:
    prefixes = {"rad": "https://x.org/onto/rad#", "clinical": "https://y.org/onto/clinical#"}
    expanded = expand({"@context": ["https://ex.org/ctx", prefixes], **FIGURE_10})
    [rule] = expanded[f"{IOA}mappingRules"]
    assert rule[f"{IOA}from"] == [{"@id": "https://x.org/onto/rad#report-summary"}]
    assert expanded[f"{IOA}confidence"] == [{"@value": 0.91}]


def test_protected_terms_are_not_redefined_by_a_conforming_processor() -> None:
    with pytest.raises(jsonld.JsonLdError):
        expand({**FIGURE_5, "@context": ["https://ex.org/ctx", {"intentRef": "https://evil.example/"}]})
    expand({**FIGURE_5, "@context": ["https://ex.org/ctx", {"ioa": IOA, "cs": "https://ex.org/onto/cs#"}]})


def test_every_class_and_property_is_a_term() -> None:
    context = core_context(Namespace("https://acme.example/"))
    assert context["ioa"]["@id"] == "https://acme.example/ioa/semantic#"
    assert context.keys() >= CLASSES.keys() | PROPERTIES.keys()
