"""One document through all the rules."""

from __future__ import annotations

import gc
import json

import pytest
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.test_reading import ENDPOINT

from bespeak.checks.lint.document import Checked, check_text
from bespeak.checks.lint.passes import PASSES

MENU = """\
agis: "1.0"
service: Menu
agtp: agtp://menu.example
description: The menu of a restaurant
version: 1.0.0
vocabulary:
  declared_verbs: [FIND]
  domain: hospitality
endpoints:
  - method: FIND
    path: /dish
    semantic:
      intent: Finds dishes that match the taste of a guest
      actor: agent
      outcome: A list of matching dishes is returned
      capability: discovery
      confidence_guidance: 0.6
      impact_tier: informational
      is_idempotent: true
    input:
      type: object
      properties:
        taste: {type: string}
      required: [taste]
      additionalProperties: false
    output:
      type: object
      properties:
        dishes: {type: array, items: {type: string}}
      required: [dishes]
    errors:
      - name: no_such_taste
        description: Nobody knows this taste
"""


def rules(checked: Checked) -> list[str]:
    return [finding.rule for finding in checked.findings]


@pytest.mark.requirement("AGIS-3.3-1")
def test_a_complete_document_has_no_finding() -> None:
    assert rules(check_text(MENU, "menu.agis", CONTEXT)) == []


@pytest.mark.requirement("AGIS-9.1-1")
def test_the_passes_are_the_eight_of_the_draft_in_their_order() -> None:
    assert [(step.number, step.name) for step in PASSES] == [
        (1, "Structural"),
        (2, "Method Syntax"),
        (3, "Method Class"),
        (4, "Path Syntax"),
        (5, "Semantic Completeness"),
        (6, "Semantic Consistency"),
        (7, "Vocabulary Integrity"),
        (8, "Schema Completeness"),
    ]


@pytest.mark.requirement("AGIS-9.1-1", "AGIS-9.2-3", "AGIS-3.3-1")
@pytest.mark.parametrize(
    ("old", "new", "family"),
    [
        ("service: Menu\n", "", "D1"),
        ("method: FIND", "method: FINDS", "M21"),
        ("method: FIND", "method: GET", "M23"),
        ("path: /dish", "path: dish", "P3"),
        ("      actor: agent\n", "", "S41"),
        ("Finds dishes that match", "Deletes dishes that match", "S45"),
        ("declared_verbs: [FIND]", "declared_verbs: [FIND, BOOK]", "V50"),
        ("required: [taste]", "required: 7", "J6"),
    ],
)
def test_a_document_that_fails_one_pass_does_not_conform(old: str, new: str, family: str) -> None:
    assert old in MENU
    checked = check_text(MENU.replace(old, new), "menu.agis", CONTEXT)
    assert any(finding.rule.startswith(family) and finding.severity == "error" for finding in checked.findings)


@pytest.mark.requirement("AGIS-9.1-2")
def test_a_finding_names_the_element_the_rule_and_the_remedy() -> None:
    checked = check_text(MENU.replace("path: /dish", "path: /dish?taste=hot"), "menu.agis", CONTEXT)
    [finding] = checked.findings
    assert finding.location is not None
    assert (finding.location.line, finding.location.column) == (11, 11)
    assert (finding.pointer, bool(finding.rule), bool(finding.help)) == ("/endpoints/0/path", True, True)
    assert "?taste=hot" in finding.message


def test_findings_are_in_the_order_of_the_text() -> None:
    broken = MENU.replace("FIND", "FINDS").replace("path: /dish", "path: Dish").replace("agent", "robot")
    lines = [finding.location.line for finding in check_text(broken, "menu.agis", CONTEXT).findings if finding.location]
    assert len(lines) > 3
    assert lines == sorted(lines)


@pytest.mark.requirement("AGIS-10-1")
def test_both_serializations_have_the_same_findings() -> None:
    broken = MENU.replace("method: FIND", "method: FINDS").replace("path: /dish", "path: /Dish")
    yaml = check_text(broken, "menu.agis", CONTEXT)
    assert yaml.subject is not None
    text = json.dumps(yaml.subject.tree.data, indent=2)
    both = [
        sorted((finding.rule, finding.pointer, finding.message) for finding in checked.findings)
        for checked in (yaml, check_text(text, "menu.agis", CONTEXT))
    ]
    assert both[0] == both[1]
    assert both[0]


def test_agis_only_rule_is_a_warning_in_an_endpoint_file() -> None:
    contradicting = ENDPOINT.replace("Lists the rooms of a property.", "Deletes the rooms of a property.")
    found = {finding.rule: finding.severity for finding in check_text(contradicting, "rooms.toml", CONTEXT).findings}
    assert found["S450"] == "warning"


def test_a_place_that_one_rule_speaks_of_is_not_spoken_of_twice() -> None:
    found = check_text(ENDPOINT.replace('"QUERY"', '"GET"'), "rooms.toml", CONTEXT).findings
    assert [finding.rule for finding in found if finding.pointer == "/endpoint/method"] == ["M203"]
    missing = check_text(ENDPOINT.replace('actor = "agent"\n', ""), "rooms.toml", CONTEXT).findings
    assert len([finding for finding in missing if "actor" in finding.message]) == 1


@pytest.mark.parametrize(
    ("old", "new", "rule", "underlined"),
    [
        ('path = "/rooms"', 'path = "/rooms/"', "P301", '"/rooms/"'),
        ("confidence = 0.9", "confidence = 90", "S403", "90"),
        ("errors = []", 'errors = [\n  "gone",\n  "not so",\n]', "J605", '"not so"'),
        ("input = {}", 'input_schema = { type = "array" }', "J602", '"array"'),
    ],
)
def test_a_finding_about_a_value_in_toml_underlines_it(old: str, new: str, rule: str, underlined: str) -> None:
    text = ENDPOINT.replace(old, new)
    [place] = [found.location for found in check_text(text, "rooms.toml", CONTEXT).findings if found.rule == rule]
    assert place is not None
    assert text.splitlines()[place.line - 1][place.column - 1 : place.end_column - 1] == underlined


def test_missing_toml_key_is_reported_at_its_table() -> None:
    text = ENDPOINT.replace("input = {}", 'input_schema = { type = "object" }')
    [place] = [found.location for found in check_text(text, "rooms.toml", CONTEXT).findings if found.rule == "J603"]
    assert place is not None
    assert text.splitlines()[place.line - 1].startswith("input_schema")


def test_an_endpoint_declared_twice_is_found_at_the_second() -> None:
    entry = MENU[MENU.index("  - method: FIND") :]
    found = check_text(MENU + entry, "menu.agis", CONTEXT).findings
    assert [finding.pointer for finding in found if finding.rule == "P307"] == ["/endpoints/1/path"]


def test_a_text_that_cannot_be_read_has_one_finding_and_no_subject() -> None:
    checked = check_text("a: [", "menu.agis", CONTEXT)
    assert (rules(checked), checked.subject) == (["D102"], None)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (MENU, "menu.agis"),
        (MENU.replace("type: string", "type: text"), "menu.agis"),
        (MENU + "  - [", "menu.agis"),
        (ENDPOINT, "rooms.toml"),
        (ENDPOINT + "=", "rooms.toml"),
        (json.dumps({"agis": "1.0", "endpoints": []}), "menu.json"),
    ],
)
def test_a_run_may_pause_the_collector_for_checking_leaves_next_to_no_garbage(text: str, file: str) -> None:
    check_text(text, file, CONTEXT)
    gc.disable()
    gc.freeze()  # what was there before is not counted, garbage or not
    try:
        check_text(text, file, CONTEXT)
        assert gc.collect() < 50
    finally:
        gc.unfreeze()
        gc.enable()
