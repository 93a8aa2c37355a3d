"""Bounds of artifacts: bytes, rules and findings."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.documents.alignment import draft_json as module
from bespeak.documents.alignment.draft_json import Collector, Place, check_size
from bespeak.documents.alignment.rules import MALFORMED, TOO_LARGE

REF = OntologyRef("x:a", "1")


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 3)
    assert check_size(b"abc", "f") is None
    finding = check_size(b"abcd", "f")
    assert finding is not None
    assert finding.rule == TOO_LARGE.id


def test_too_many_rules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RULES", 2)
    collector = Collector("f")
    for place in range(3):
        assert not collector.is_full
        collector.add(MappingRule(source=f"a:{place}", target="b:1"), Place(place))
    assert collector.is_full
    assert [one.rule for one in collector.findings] == [TOO_LARGE.id]


def test_exact_repetition_is_left_out() -> None:
    collector = Collector("f")
    for _ in range(2):
        collector.add(MappingRule(source="a:1", target="b:1", confidence=0.5), Place())
    assert len(collector.rules) == 1
    assert collector.findings == []


def test_error_beyond_the_listed_findings_still_refuses_the_artifact() -> None:
    collector = Collector("f")
    for _ in range(60):
        collector.report(MALFORMED, "a warning", Place(), warning=True)
    collector.report(MALFORMED, "an error", Place())
    document = collector.document(Alignment(source=REF, target=REF, rules=()))
    assert len(document.findings) == 50
    assert document.alignment is None
