""""""

from __future__ import annotations

from tests.declared_rules import assert_complete

from bespeak.state import rules


def test_each_rule_is_listed_and_says_why_and_what_to_do() -> None:
    assert_complete(rules)
