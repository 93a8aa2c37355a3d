"""The rules for documents of one live service beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.checks.lint import served
from bespeak.checks.lint.rule_index import find_rule
from bespeak.checks.lint.served import CUT
from bespeak.text.diagnostics.diagnostic import Rule, declared_in

RULES = tuple(rule for rule in declared_in(served).values() if rule.id >= "W934")

TESTS = Path(__file__).parents[2] / "agent" / "discovery"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_known_and_has_documents_that_break_it(rule: Rule) -> None:
    assert find_rule(rule.id) is rule
    tests = "test_served_rules.py" if rule is CUT else "test_agreement.py"
    assert f'"{rule.id}"' in (TESTS / tests).read_text("utf-8")


def test_ids_are_in_their_range_and_in_order() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert ids[0] >= "W934"
    assert ids[-1] <= "W949"
