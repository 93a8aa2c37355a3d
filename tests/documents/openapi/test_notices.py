"""Findings about a large description are limited in number."""

from __future__ import annotations

from bespeak.documents.openapi.document_text import DescriptionFile, Notices, Spot
from bespeak.documents.openapi.rules import BROKEN_REFERENCE, NOT_IMPORTED, SCHEMA_PART_DROPPED
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

ROOT = Spot({}, DescriptionFile("api.json", {}, lambda at: Location("api.json", len(at) + 1)))


def test_many_findings_of_one_rule_are_shown_in_part_and_counted() -> None:
    notices = Notices("api.json")
    for number in range(500):
        notices.warning(SCHEMA_PART_DROPPED, "left out", ROOT.below(str(number)))
    notices.error(BROKEN_REFERENCE, "leads nowhere", ROOT)
    found = notices.all()
    assert len(found) == 12
    assert "490 more findings of D163" in found[-1].message
    assert found[-1].severity == "warning"


def test_duplicate_finding_is_reported_once() -> None:
    notices = Notices("api.json")
    for _ in range(3):
        notices.info(NOT_IMPORTED, "not imported", ROOT.below("a"))
    assert [(finding.pointer, str(finding.location)) for finding in notices.all()] == [("/a", "api.json:3")]


def test_findings_of_the_text_reader_are_included() -> None:
    notices = Notices("api.json")
    finding = Diagnostic("D109", "warning", "twice")
    notices.pass_on(finding)
    assert notices.all() == [finding]
