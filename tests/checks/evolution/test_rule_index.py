"""The rules of contract changes."""

from __future__ import annotations

from bespeak.checks.evolution.rule_index import RULES
from bespeak.checks.lint.rule_index import all_rules
from bespeak.text.diagnostics.page import page_of


def test_names_and_ids_are_shared_with_no_other_rule() -> None:
    names = [rule.name for rule in (*RULES.values(), *all_rules().values())]
    assert len(set(names)) == len(names)
    assert not RULES.keys() & all_rules().keys()
    assert all(rule.startswith("C1") for rule in RULES)


def test_every_rule_says_what_to_do() -> None:
    assert [
        rule.id for rule in RULES.values() if ". " not in page_of(rule).why or not page_of(rule).why.endswith(".")
    ] == []


def test_findings_about_approvals_and_versions_have_pages_as_the_changes_have() -> None:
    assert {"C195", "C196", "C197", "C198"} <= RULES.keys()
