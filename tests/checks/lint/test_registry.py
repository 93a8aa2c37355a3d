"""Every rule has its entry."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import bespeak
from bespeak.checks.lint.passes import RULES
from bespeak.checks.lint.registry import all_rules, find_rule, near_rules, pass_of, rule_texts
from bespeak.contract.catalog.document import RULES as CATALOG_RULES
from bespeak.text.reading.findings import RULES as READER_RULES


def test_all_rules_are_there_once_and_in_order() -> None:
    rules = all_rules()
    assert rules.keys() >= {*RULES, *READER_RULES, *CATALOG_RULES, "D120", "D190", "D193"}
    assert list(rules) == sorted(rules)
    assert all(rule.id == key and re.fullmatch(r"[A-Z][0-9]{3}", key) for key, rule in rules.items())


def test_no_two_rules_share_a_name() -> None:
    names = Counter(rule.name for rule in all_rules().values())
    assert [name for name, number in names.items() if number > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_every_rule_a_finding_names_in_the_source_is_known() -> None:
    source = Path(bespeak.__file__).parent
    packages = ("lint", "documents", "catalog", "diagnostics")
    used = {
        rule
        for package in packages
        for path in (source / package).rglob("*.py")
        for rule in re.findall(r'"([A-Z][0-9]{3})"', path.read_text("utf-8"))
    }
    assert used - all_rules().keys() == set()


@pytest.mark.parametrize("text", ["P302", "p302", " method-name-in-path ", "METHOD-NAME-IN-PATH"])
def test_a_rule_is_found_by_id_or_name(text: str) -> None:
    rule = find_rule(text)
    assert rule is not None
    assert rule.id == "P302"


def test_a_rule_that_is_not_there_is_none_and_has_neighbours() -> None:
    assert find_rule("P399") is None
    assert "P302" in near_rules("P3O2")
    assert "method-name-in-path" in near_rules("method-names-in-path")
    assert "unused-ignore" in near_rules("unused")
    assert near_rules("qqqqqqqq") == []


@pytest.mark.parametrize(
    ("rule", "number"),
    [("D120", 1), ("M210", 2), ("M230", 3), ("P320", 4), ("S410", 5), ("X901", 5), ("S450", 6), ("V501", 7)],
)
def test_a_rule_of_agis_has_its_pass(rule: str, number: int) -> None:
    assert pass_of(rule) == number


@pytest.mark.parametrize("rule", ["P302", "D101", "D190", "H701", "V551"])
def test_other_rules_have_none(rule: str) -> None:
    assert pass_of(rule) == 0


def test_reporters_get_every_rule() -> None:
    texts = rule_texts()
    assert texts.keys() == all_rules().keys()
    assert texts["P302"].name == "method-name-in-path"
