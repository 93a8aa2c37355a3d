"""Rules for the match between a profile and a service."""

from __future__ import annotations

from bespeak.checks.lint.rule_index import all_rules
from bespeak.contract.ontology import matching
from bespeak.contract.ontology.rules import ProfileRule
from bespeak.text.diagnostics.page import page_of


def test_rules_have_pages_and_say_what_to_do() -> None:
    rules = [one for one in vars(matching).values() if isinstance(one, ProfileRule)]
    assert [rule.id for rule in rules] == [f"I24{number}" for number in range(1, 9)]
    for rule in rules:
        assert all_rules()[rule.id] is rule
        assert rule.text("/x", "v", "o").startswith("/x ")
        assert page_of(rule).why.count(".") >= 2


def test_only_the_stability_of_a_task_is_beyond_policy() -> None:
    always = {rule.id for rule in vars(matching).values() if isinstance(rule, ProfileRule) and rule.always}
    assert always == {matching.UNSTABLE.id}
