"""The kinds of change."""

from __future__ import annotations

from tests.checks.evolution.contracts import MIRRORED

from bespeak.checks.evolution.change import ChangeRule
from bespeak.checks.evolution.rule_index import RULES

CHANGES = {rule.id: rule for rule in RULES.values() if isinstance(rule, ChangeRule)}


def test_mirror_of_an_addition_is_a_removal_and_of_narrowing_widening() -> None:
    opposite = {
        "added": "removed",
        "removed": "added",
        "narrowed": "widened",
        "widened": "narrowed",
        "changed": "changed",
    }
    assert all(CHANGES[MIRRORED[rule.id]].kind == opposite[rule.kind] for rule in CHANGES.values())


def test_mirrors_are_of_the_same_category() -> None:
    assert all(CHANGES[MIRRORED[rule.id]].category == rule.category for rule in CHANGES.values())


def test_what_takes_something_away_is_usually_an_error() -> None:
    severities = {rule.kind: rule.severity for rule in CHANGES.values()}
    assert severities == {
        "removed": "error",
        "narrowed": "error",
        "changed": "warning",
        "widened": "info",
        "added": "info",
    }
