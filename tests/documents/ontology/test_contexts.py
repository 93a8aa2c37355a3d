"""JSON-LD contexts: known ones are inlined, hostile ones are refused at a pointer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bespeak.documents.ontology.contexts import LIMITS, OntologyLimits
from bespeak.documents.ontology.reader import read_ontology
from bespeak.text.diagnostics.diagnostic import Diagnostic

BASE = "https://ex.org/ctx"


def refusal(context: Any, limits: OntologyLimits = LIMITS) -> Diagnostic:
    document = {"@context": context, "@id": "x:a", "@type": "x:T"}
    ontology, [finding] = read_ontology(json.dumps(document).encode(), "file", "jsonld", limits=limits)
    assert ontology is None
    return finding


@pytest.mark.parametrize(
    ("context", "rule", "pointer"),
    [
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
    ],
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


def test_registered_context_is_used_like_a_shipped_one() -> None:
    document = {"@context": ["https://y.org/ctx", BASE], "id": "y:a", "type": "ioa:Capability"}
    known = {"https://y.org/ctx": {"y": "https://y.org/onto#"}}
    ontology, _ = read_ontology(json.dumps(document).encode(), "file", "jsonld", contexts=known)
    assert ontology is not None
    assert list(ontology.terms) == ["https://y.org/onto#a"]


def test_shipped_context_is_extended_and_may_be_repeated() -> None:
    context = [BASE, {"ioa": "https://ex.org/ioa/semantic#", "cs": "https://ex.org/onto/cs#"}, BASE]
    document = {"@context": context, "id": "cs:a", "type": "ioa:Capability"}
    ontology, findings = read_ontology(json.dumps(document).encode(), "file", "jsonld", version="1")
    assert ontology is not None, findings
    assert ontology.terms["https://ex.org/onto/cs#a"].types == ("https://ex.org/ioa/semantic#Capability",)
