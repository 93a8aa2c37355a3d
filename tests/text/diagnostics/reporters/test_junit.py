"""JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.json_report import render_junit
from bespeak.text.source.tree import Location


def test_a_file_is_a_suite_and_a_finding_a_case(report: Report) -> None:
    root = ET.fromstring(render_junit(report).encode())
    assert root.attrib == {"name": "bespeak lint", "tests": "5", "failures": "2", "errors": "0"}
    assert [suite.get("name") for suite in root] == ["a/rooms.agis", "b, c: d", "clean.toml", "run"]
    first, second = root[0]
    assert (first.get("name"), first.get("classname"), first.get("line")) == ("P321:4:11", "a/rooms.agis", "4")
    assert (first[0].tag, first[0].text) == ("failure", "the path '/room/' ends with a slash. Write '/room'.")
    assert second[0].tag == "system-out"


def test_a_file_without_findings_is_a_case_that_passes(report: Report) -> None:
    root = ET.fromstring(render_junit(report).encode())
    [case] = root[2]
    assert (case.get("name"), len(case)) == ("clean", 0)


@given(st.text(), st.text())
def test_any_text_gives_xml_that_can_be_read(message: str, file: str) -> None:
    finding = Finding(Diagnostic("P301", "error", message, Location(file, 1, 1), help=message))
    ET.fromstring(render_junit(Report(findings=[finding])).encode())
