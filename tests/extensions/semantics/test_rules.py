"""Rules of ontologies, profiles and alignments: what rejects always, what a policy decides, and their messages."""

from __future__ import annotations

from bespeak.checks.lint.rule_index import all_rules, find_rule
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.rules import ProfileRule
from bespeak.text.diagnostics.diagnostic import declared_in
from bespeak.text.diagnostics.report import page_of

DECLARED = {rule_id: rule for rule_id, rule in declared_in(rules).items() if isinstance(rule, ProfileRule)}
MATCHING = {rule_id: rule for rule_id, rule in DECLARED.items() if rule_id.startswith("I24")}
RULES = {rule_id: rule for rule_id, rule in DECLARED.items() if rule_id not in MATCHING}


def test_must_fields_reject_always_and_consistency_rules_by_policy() -> None:
    assert {rule.source for rule in RULES.values() if rule.always} == {"IoA 6.1", "IoA 6.2", "IoA 6.3"}
    assert {rule.source for rule in RULES.values() if not rule.always} == {"IoA 5.3", "IoA 5.4", "IoA 7.1"}
    assert {rule_id for rule_id, rule in MATCHING.items() if rule.always} == {rules.UNSTABLE.id}


def test_message_names_place_value_and_conflict() -> None:
    text = rules.BINDING_CONFLICT.text("/profileContext/termBindings/0/sense", "law:MasterOfLaws", "cs:ComputerScience")
    expected = "is 'law:MasterOfLaws', a concept of another domain than 'cs:ComputerScience'"
    assert text == f"/profileContext/termBindings/0/sense {expected}"
    assert rules.BINDING_CONFLICT.reason == "termBinding sense conflicts with domain"


def test_message_of_any_value_is_short_and_written() -> None:
    assert [*MATCHING] == [f"I24{number}" for number in range(1, 10)]
    for rule in (*RULES.values(), *MATCHING.values()):
        assert rule.text("/x", "v", "o").startswith("/x ")
        assert "{" not in rule.text("/x", "y" * 10_000, "{path}").replace("{path}", "")
        assert len(rule.text("/x", "y" * 10_000, ["z" * 10_000] * 100)) < 500


def test_every_rule_is_registered_and_says_why() -> None:
    declared = declared_in(rules)
    assert len(declared) > 40
    assert declared.items() <= all_rules().items()
    assert all(page_of(rule).summary and page_of(rule).why for rule in declared.values())
    assert find_rule("ontology-blank-nodes") is rules.BLANK_NODES
