"""The JSON of the draft holds everything; what is wrong is named by its place."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from tests.cases import rows
from tests.extensions.semantics.alignment.artifacts import ARTIFACT, RULE, alignments

from bespeak.extensions.semantics.alignment import draft_json as module
from bespeak.extensions.semantics.alignment.draft_json import (
    Collector,
    RulePlace,
    canonical_json,
    check_size,
    read_json,
    statement_of,
    write_json,
)
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule
from bespeak.extensions.semantics.rules import (
    ALIGNMENT_IRI,
    ALIGNMENT_TOO_LARGE,
    BAD_ARTIFACT,
    CONFIDENCE,
    CONFLICT,
    RELATION,
)
from bespeak.extensions.semantics.terms import OntologyRef

FIGURE = {
    "sourceOntologyId": "https://x.org/onto/rad",
    "targetOntologyId": "https://y.org/onto/clinical",
    "mappingRules": [{"from": "rad:report-summary", "to": "clinical:note-summarize"}],
    "confidence": 0.91,
}


def read(**changes: Any) -> tuple[Alignment | None, list[tuple[str, str]]]:
    document = read_json(json.dumps(FIGURE | changes).encode(), "a.json")
    return document.alignment, [(one.rule, one.pointer) for one in document.findings]


@given(alignments)
def test_everything_comes_back(alignment: Alignment) -> None:
    document = read_json(write_json(alignment), "a.json")
    assert (document.findings, document.alignment) == ([], alignment)


@pytest.mark.requirement("IOA-7.2-1", "IOA-7.2-2")
def test_example_of_the_draft_is_read_and_prefixes_of_an_inline_context_are_expanded() -> None:
    alignment, findings = read()
    assert findings == []
    assert alignment.confidence_of(alignment.rules[0]) == 0.91
    assert alignment.rules[0].relation == "equivalent"
    alignment, _ = read(**{"@context": {"rad": "https://x.org/onto/rad#"}})
    assert alignment.rules[0].source == "https://x.org/onto/rad#report-summary"


@rows(
    "changes, rule, pointer",
    ({"mappingRules": [{"from": "a:1", "to": "b:1", "confidence": 1.5}]}, CONFIDENCE, "/mappingRules/0"),
    ({"mappingRules": [{"from": "a:1", "to": "b:1", "confidence": "x"}]}, CONFIDENCE, "/mappingRules/0/confidence"),
    ({"mappingRules": [{"from": "a:1", "to": "b:1", "relation": "same"}]}, RELATION, "/mappingRules/0/relation"),
    ({"mappingRules": [{"from": "a:1", "to": "no iri"}]}, ALIGNMENT_IRI, "/mappingRules/0/to"),
    ({"mappingRules": [{"from": "a:1"}]}, BAD_ARTIFACT, "/mappingRules/0"),
    ({"mappingRules": ["x"]}, BAD_ARTIFACT, "/mappingRules/0"),
    ({"mappingRules": {}}, BAD_ARTIFACT, "/mappingRules"),
    ({"sourceOntologyId": "x"}, ALIGNMENT_IRI, "/sourceOntologyId"),
    ({"confidence": -1}, CONFIDENCE, ""),
    (
        {"mappingRules": [{"from": "a:1", "to": "b:1"}, {"from": "a:1", "to": "b:1", "relation": "broader"}]},
        *(CONFLICT, "/mappingRules/1"),
    ),
)
def test_poisoned_artifact_is_refused_with_the_place(changes: dict[str, Any], rule: Any, pointer: str) -> None:
    alignment, findings = read(**changes)
    assert alignment is None
    assert findings == [(rule.id, pointer)]


def test_all_faults_are_reported_at_once_and_unknown_members_left_out() -> None:
    wrong = [{"from": "a:1", "to": "b:1", "confidence": 2}, {"from": "a:2", "to": "", "relation": "equivalent"}]
    assert len(read(mappingRules=wrong)[1]) == 2
    alignment, findings = read(extra=1)
    assert alignment is not None
    assert findings == [(BAD_ARTIFACT.id, "")]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"a": 1', b"\xff", b'{"confidence": 1, "confidence": 2}', b"[" * 100_000]
)
def test_other_documents_are_refused(data: bytes) -> None:
    document = read_json(data, "a.json")
    assert document.alignment is None
    assert document.findings


def test_digest_does_not_depend_on_the_signature_and_changes_with_every_rule() -> None:
    document = read_json(write_json(ARTIFACT, "a.b.c"), "a.json")
    assert document.signature == "a.b.c"
    assert document.alignment is not None
    assert canonical_json(document.alignment) == canonical_json(ARTIFACT)
    other = msgspec.structs.replace(ARTIFACT, rules=(msgspec.structs.replace(RULE, confidence=0.92),))
    assert statement_of(other).sha256 != statement_of(ARTIFACT).sha256


REF = OntologyRef("x:a", "1")


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 3)
    assert check_size(b"abc", "f") is None
    finding = check_size(b"abcd", "f")
    assert finding.rule == ALIGNMENT_TOO_LARGE.id


def test_too_many_rules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RULES", 2)
    collector = Collector("f")
    for place in range(3):
        assert not collector.is_full
        collector.add(MappingRule(source=f"a:{place}", target="b:1"), RulePlace(place))
    assert collector.is_full
    assert [one.rule for one in collector.findings] == [ALIGNMENT_TOO_LARGE.id]


def test_exact_repetition_is_left_out() -> None:
    collector = Collector("f")
    for _ in range(2):
        collector.add(MappingRule(source="a:1", target="b:1", confidence=0.5), RulePlace())
    assert len(collector.rules) == 1
    assert collector.findings == []


def test_error_beyond_the_listed_findings_still_refuses_the_artifact() -> None:
    collector = Collector("f")
    for _ in range(60):
        collector.report(BAD_ARTIFACT, "a warning", RulePlace(), warning=True)
    collector.report(BAD_ARTIFACT, "an error", RulePlace())
    document = collector.document(Alignment(source=REF, target=REF, rules=()))
    assert len(document.findings) == 50
    assert document.alignment is None
