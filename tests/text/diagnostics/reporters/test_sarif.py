"""SARIF 2.1.0: what code scanning needs, in the places where it looks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report, page_of
from bespeak.text.diagnostics.reporters.json_report import render_sarif
from bespeak.text.source.tree import Location


@pytest.fixture
def run(report: Report) -> Any:
    log = json.loads(render_sarif(report))
    assert log["version"] == "2.1.0"
    assert next(iter(log)) == "version"
    [run] = log["runs"]
    return run


def test_each_result_refers_to_its_rule_and_one_of_a_whole_file_has_no_region(run: Any) -> None:
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["P321", "M230", "D113", "Z999"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note", "error"]
    [place] = run["results"][2]["locations"]
    assert place == {"physicalLocation": {"artifactLocation": {"uri": "b%2C%20c%3A%20d", "uriBaseId": "%SRCROOT%"}}}
    assert "locations" not in run["results"][3]


def test_a_rule_is_described(run: Any, report: Report) -> None:
    [rule] = [rule for rule in run["tool"]["driver"]["rules"] if rule["id"] == "P321"]
    assert rule["name"] == "trailing-slash"
    assert rule["shortDescription"]["text"] == "A path has no empty segments and no trailing slash."
    assert rule["help"]["text"] == f"{page_of(report.rules['P321']).why} Run `bespeak explain P321`."
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["properties"]["tags"] == ["contract", "AGIS 4.1"]


def test_a_place_is_a_region_of_a_file_and_a_pointer(run: Any) -> None:
    [place] = run["results"][0]["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "a/rooms.agis", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 17},
    }
    assert place["logicalLocations"] == [{"fullyQualifiedName": "/endpoints/0/path", "kind": "element"}]


def test_fingerprints_and_repairs_are_given(run: Any) -> None:
    first, second, *_ = run["results"]
    assert first["partialFingerprints"] == {"bespeak/v1": "f1"}
    [fix] = first["fixes"]
    assert fix["description"]["text"] == "Write /room"
    [change] = fix["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 17},
            "insertedContent": {"text": "/room"},
        }
    ]
    assert "fixes" not in second, "a repair without its text is no SARIF fix"


def test_address_is_not_relative_to_the_sources() -> None:
    url = "https://flights.test/.well-known/ai?x=%20"
    wrong = Report(findings=[Finding(Diagnostic("W919", "warning", "wrong", Location(url)))], files=[url])
    [run] = json.loads(render_sarif(wrong))["runs"]
    assert run["artifacts"] == [{"location": {"uri": url}}]
    assert run["results"][0]["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": url}}
    assert "properties" not in run
