"""The rules of contract changes."""

from __future__ import annotations

from bespeak.checks.evolution.change_report import RULES
from bespeak.checks.lint.rule_index import all_rules
from bespeak.text.diagnostics.report import page_of


def test_rules_of_changes_have_their_own_names_and_ids_and_say_what_to_do() -> None:
    names = [rule.name for rule in (*RULES.values(), *all_rules().values())]
    assert len(set(names)) == len(names)
    assert not RULES.keys() & all_rules().keys()
    assert all(rule.startswith("C1") for rule in RULES)
    reasons = {rule.id: page_of(rule).why for rule in RULES.values()}
    assert [rule for rule, why in reasons.items() if ". " not in why or not why.endswith(".")] == []
    assert {"C195", "C196", "C197", "C198"} <= RULES.keys()
