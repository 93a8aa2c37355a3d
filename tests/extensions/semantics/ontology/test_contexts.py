"""JSON-LD contexts: known ones are inlined, hostile ones are refused at a pointer."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pyld import jsonld
from tests.cases import rows
from tests.extensions.semantics.ontology.figures import FIGURE_3, FIGURE_5, FIGURE_10

from bespeak.contract.core_ontology import CLASSES, PROPERTIES, Namespace
from bespeak.extensions.semantics.ontology.contexts import (
    LIMITS,
    DocumentRefused,
    OntologyLimits,
    core_context,
    shipped_contexts,
)
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.rules import TOO_LARGE
from bespeak.text.diagnostics.diagnostic import Diagnostic

BASE = "https://ex.org/ctx"


def refusal(context: Any, limits: OntologyLimits = LIMITS) -> Diagnostic:
    document = {"@context": context, "@id": "x:a", "@type": "x:T"}
    ontology, [finding] = read_ontology(json.dumps(document).encode(), "file", "jsonld", limits=limits)
    assert ontology is None
    return finding


@rows(
    "context, rule, pointer",
    ("https://evil.example/ctx", "I104", "/@context"),
    ([BASE, "file:///etc/passwd"], "I104", "/@context/1"),
    ({"@import": "https://evil.example/ctx"}, "I104", "/@context/@import"),
    ([BASE, {"@type": "x:t"}], "I105", "/@context/1/@type"),
    ({"@context": {"a": "x:b"}}, "I105", "/@context/@context"),
    ({"a": {"@id": "x:b", "@context": {"b": "x:c"}}}, "I105", "/@context/a"),
    ({"a": {"@id": {"@id": "x:b"}}}, "I105", "/@context/a"),
    ({"a": ["x:b"]}, "I105", "/@context/a"),
    ([[BASE]], "I105", "/@context/0"),
    (7, "I105", "/@context"),
    ([BASE, {"ontologyId": "x:other"}], "I105", "/@context/1/ontologyId"),
    ([BASE, {"ioa": "https://evil.example/"}], "I105", "/@context/1/ioa"),
    ([BASE, {"type": None}], "I105", "/@context/1/type"),
    ([BASE, None], "I105", "/@context/1"),
    # Cycles are found by the parser.
    ({"a": "b:c", "b": "a:d"}, "I102", ""),
)
def test_hostile_context_is_refused_at_its_place(context: Any, rule: str, pointer: str) -> None:
    finding = refusal(context)
    assert (finding.rule, finding.pointer) == (rule, pointer)


def test_huge_and_many_contexts_are_refused() -> None:
    assert refusal({f"t{number}": "x:t" for number in range(50)}, OntologyLimits(context_terms=40)).rule == "I105"
    assert refusal([{}] * 9, OntologyLimits(contexts=8)).pointer == "/@context/8"
    nested = {"@context": {}, "@id": "x:a", "x:p": [{"@context": "https://evil.example/", "@id": "x:b"}]}
    _, [finding] = read_ontology(json.dumps(nested).encode(), "file", "jsonld")
    assert (finding.rule, finding.pointer) == ("I104", "/x:p/0/@context")


def test_registered_context_is_used_and_protected_terms_are_not_redefined() -> None:
    document = {"@context": ["https://y.org/ctx", BASE], "id": "y:a", "type": "ioa:Capability"}
    known = {"https://y.org/ctx": {"y": "https://y.org/onto#"}}
    ontology, _ = read_ontology(json.dumps(document).encode(), "file", "jsonld", contexts=known)
    assert list(ontology.terms) == ["https://y.org/onto#a"]
    with pytest.raises(jsonld.JsonLdError):
        expand({**FIGURE_5, "@context": ["https://ex.org/ctx", {"intentRef": "https://evil.example/"}]})
    expand({**FIGURE_5, "@context": ["https://ex.org/ctx", {"ioa": IOA, "cs": "https://ex.org/onto/cs#"}]})


def test_shipped_context_is_extended_and_may_be_repeated() -> None:
    context = [BASE, {"ioa": "https://ex.org/ioa/semantic#", "cs": "https://ex.org/onto/cs#"}, BASE]
    document = {"@context": context, "id": "cs:a", "type": "ioa:Capability"}
    ontology, findings = read_ontology(json.dumps(document).encode(), "file", "jsonld", version="1")
    assert ontology is not None, findings
    assert ontology.terms["https://ex.org/onto/cs#a"].types == ("https://ex.org/ioa/semantic#Capability",)


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


def test_every_class_and_property_is_a_term_and_a_refusal_says_what_its_finding_says() -> None:
    context = core_context(Namespace("https://acme.example/"))
    assert context["ioa"]["@id"] == "https://acme.example/ioa/semantic#"
    assert context.keys() >= CLASSES.keys() | PROPERTIES.keys()
    refused = DocumentRefused(TOO_LARGE.found("it is too large"))
    assert refused.finding.message in str(refused)


@pytest.mark.parametrize("name", ["size", "triples", "characters"])
def test_limit_of_one_refuses_an_ordinary_document(name: str) -> None:
    ontology, [finding] = read_ontology(FIGURE_3.encode(), "f.ttl", limits=OntologyLimits(**{name: 1}))
    assert ontology is None
    assert finding.rule == "I101"
