"""One document through all the rules."""

from __future__ import annotations

import gc
import json

import pytest
from tests.cases import rows
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.endpoint_files import ENDPOINT as BOOK_FILE
from tests.checks.lint.test_reading import ENDPOINT as TEST_READING_ENDPOINT

from bespeak.checks.lint.config import Config, Judge, PathIgnore
from bespeak.checks.lint.document import Checked, Examined, Times, check_text, examine, read_subject, settle
from bespeak.checks.lint.rule_index import PASSES
from bespeak.checks.lint.rules.path import DUPLICATE_ENDPOINT
from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.catalog.document import load_bundled

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


@pytest.mark.requirement("AGIS-3.3-1", "AGIS-9.1-1")
def test_complete_document_has_no_finding_in_the_eight_passes_of_the_draft() -> None:
    assert rules(check_text(MENU, "menu.agis", CONTEXT)) == []
    names = "Structural, Method Syntax, Method Class, Path Syntax, Semantic Completeness, Semantic Consistency, "
    names += "Vocabulary Integrity, Schema Completeness"
    assert [(step.number, step.name) for step in PASSES] == list(enumerate(names.split(", "), 1))


@pytest.mark.requirement("AGIS-9.1-1", "AGIS-9.2-3", "AGIS-3.3-1")
@rows(
    "old, new, family",
    ("service: Menu\n", "", "D1"),
    ("method: FIND", "method: FINDS", "M21"),
    ("method: FIND", "method: GET", "M23"),
    ("path: /dish", "path: dish", "P3"),
    ("      actor: agent\n", "", "S41"),
    ("Finds dishes that match", "Deletes dishes that match", "S45"),
    ("declared_verbs: [FIND]", "declared_verbs: [FIND, BOOK]", "V50"),
    ("required: [taste]", "required: 7", "J6"),
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


def test_agis_only_rule_is_a_warning_in_an_endpoint_file_and_a_place_is_reported_once() -> None:
    contradicting = TEST_READING_ENDPOINT.replace("Lists the rooms of a property.", "Deletes the rooms of a property.")
    found = {finding.rule: finding.severity for finding in check_text(contradicting, "rooms.toml", CONTEXT).findings}
    assert found["S450"] == "warning"
    found = check_text(TEST_READING_ENDPOINT.replace('"QUERY"', '"GET"'), "rooms.toml", CONTEXT).findings
    assert [finding.rule for finding in found if finding.pointer == "/endpoint/method"] == ["M203"]
    missing = check_text(TEST_READING_ENDPOINT.replace('actor = "agent"\n', ""), "rooms.toml", CONTEXT).findings
    assert len([finding for finding in missing if "actor" in finding.message]) == 1


@rows(
    "old, new, rule, underlined",
    ('path = "/rooms"', 'path = "/rooms/"', "P301", '"/rooms/"'),
    ("confidence = 0.9", "confidence = 90", "S403", "90"),
    ("errors = []", 'errors = [\n  "gone",\n  "not so",\n]', "J605", '"not so"'),
    ("input = {}", 'input_schema = { type = "array" }', "J602", '"array"'),
)
def test_a_finding_about_a_value_in_toml_underlines_it(old: str, new: str, rule: str, underlined: str) -> None:
    text = TEST_READING_ENDPOINT.replace(old, new)
    [place] = [found.location for found in check_text(text, "rooms.toml", CONTEXT).findings if found.rule == rule]
    assert place is not None
    assert text.splitlines()[place.line - 1][place.column - 1 : place.end_column - 1] == underlined


def test_missing_toml_key_is_reported_at_its_table() -> None:
    text = TEST_READING_ENDPOINT.replace("input = {}", 'input_schema = { type = "object" }')
    [place] = [found.location for found in check_text(text, "rooms.toml", CONTEXT).findings if found.rule == "J603"]
    assert place is not None
    assert text.splitlines()[place.line - 1].startswith("input_schema")


def test_repeated_endpoint_is_found_at_the_second_and_unreadable_text_has_one_finding() -> None:
    entry = MENU[MENU.index("  - method: FIND") :]
    found = check_text(MENU + entry, "menu.agis", CONTEXT).findings
    assert [finding.pointer for finding in found if finding.rule == "P307"] == ["/endpoints/1/path"]
    checked = check_text("a: [", "menu.agis", CONTEXT)
    assert (rules(checked), checked.subject) == (["D102"], None)


@rows(
    "text, file",
    (MENU, "menu.agis"),
    (MENU.replace("type: string", "type: text"), "menu.agis"),
    (MENU + "  - [", "menu.agis"),
    (TEST_READING_ENDPOINT, "rooms.toml"),
    (TEST_READING_ENDPOINT + "=", "rooms.toml"),
    (json.dumps({"agis": "1.0", "endpoints": []}), "menu.json"),
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


ENDPOINT = BOOK_FILE.replace('"/room/{room_id}"', '"/book"{comment}')


def run(comment: str = "", config: Config | None = None, **more: object) -> Examined:
    context = LintContext(catalog=load_bundled())
    judge = Judge(config or Config(select=("P30", "D19")))
    return examine(ENDPOINT.format(comment=comment), "book.toml", context, judge, **more)  # type: ignore[arg-type]


def examine_rules(examined: Examined) -> list[str]:
    return [finding.diagnostic.rule for finding in examined.findings]


def test_a_finding_has_its_place_and_its_name() -> None:
    [finding] = run().findings
    said = finding.diagnostic
    assert (said.rule, said.severity, said.pointer) == ("P302", "error", "/endpoint/path")
    assert said.location is not None
    assert (said.location.file, said.location.line) == ("book.toml", 4)
    assert len(finding.fingerprint) == 20


def test_fingerprint_uses_the_path_and_not_the_shown_name() -> None:
    names = {run(path=path).findings[0].fingerprint for path in ("a/book.toml", "b/book.toml")}
    assert len(names) == 2
    assert run(path="book.toml").findings == run().findings


IGNORED, BOTH = "  # bespeak: ignore[P302] the noun", "  # bespeak: ignore[P302, S401] the noun"
BY_PATH = Config(select=("P302",), per_path_ignores=(PathIgnore("book.toml", "", ("P302",)),))


@rows(
    "comment, config, found, ignored",
    (IGNORED, None, [], 1),
    # An unused ignore is a finding, unless one of the two rules is off.
    (BOTH, Config(select=("P302", "S401", "D190")), ["D190"], 1),
    (BOTH, Config(select=("P302", "D190")), [], 1),
    (BOTH, Config(select=("P302", "S401")), [], 1),
    ("", BY_PATH, [], 1),
)
def test_ignored_finding_is_hidden_and_counted(
    comment: str, config: Config | None, found: list[str], ignored: int
) -> None:
    examined = run(comment, config)
    assert (examine_rules(examined), examined.ignored) == (found, ignored)


def test_conformance_run_shows_ignored_findings_and_a_severity_is_the_one_that_is_set() -> None:
    assert "P302" in examine_rules(run(IGNORED, Config(select=("P302",), conformance=True)))
    [finding] = run(config=Config(select=("P302",), severity={"P302": "info"})).findings
    assert finding.diagnostic.severity == "info"


def test_cross_file_findings_can_be_ignored_and_an_unreadable_text_has_no_subject() -> None:
    extra = [DUPLICATE_ENDPOINT.inside("/endpoint/path", "declared twice")]
    found = {finding.diagnostic.rule: finding.diagnostic for finding in run(extra=extra).findings}
    assert found.keys() == {"P302", "P307"}
    assert found["P307"].location == found["P302"].location
    assert examine_rules(run("  # bespeak: ignore[P302, P307] it is so", extra=extra)) == []
    examined = examine("[endpoint\n", "x.toml", LintContext(catalog=load_bundled()), Judge(Config(select=("S",))))
    assert examine_rules(examined) == ["D102"]
    assert examined.subject is None
    unknown = examine("{}", "x.json", LintContext(catalog=load_bundled()), Judge(Config(select=("S",))))
    assert examine_rules(unknown) == ["D114"]


@pytest.mark.parametrize("with_edits", [True, False])
def test_repairs_are_given_as_text_on_demand(with_edits: bool) -> None:
    text = '{"agis": "1.0", "x-bespeak-ignore": {"P302": "why", "S401": "why"}}'
    judge = Judge(Config(select=("D190", "P302", "S401")))
    examined = examine(text, "x.agis", LintContext(catalog=load_bundled()), judge, with_edits=with_edits)
    unused = [finding for finding in examined.findings if finding.diagnostic.rule == "D190"]
    assert len(unused) == 2
    assert all(bool(finding.edits) is with_edits for finding in unused)


def test_settle_gives_the_same_findings_as_examine() -> None:
    text, context, judge = ENDPOINT.format(comment=""), LintContext(catalog=load_bundled()), Judge(Config())
    settled = settle(check_text(text, "a.toml", context), judge, "a.toml")
    assert settled.findings
    assert settled.findings == examine(text, "a.toml", context, judge).findings


TEXT = 'agis: "1.0"\nendpoints:\n  - method: BOOK\n    path: /room\n'


def test_every_pass_has_its_line() -> None:
    subject = read_subject(TEXT, "x.agis")
    assert isinstance(subject, Subject)
    times = Times()
    times.measure(subject, LintContext(catalog=load_bundled()))
    first, *rows = times.rows()
    assert "1 documents" in first
    assert any(row.endswith("reading, pass 1") for row in rows)
    assert all(any(f"pass {step.number}, " in row for row in rows) for step in PASSES if step.document or step.endpoint)
    numbers = [float(row.split()[0]) for row in rows]
    assert numbers == sorted(numbers, reverse=True)
