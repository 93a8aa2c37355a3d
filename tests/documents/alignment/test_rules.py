"""Rules of alignment artifacts have pages of their own."""

from __future__ import annotations

from bespeak.checks.lint.rule_index import all_rules
from bespeak.documents.alignment import rules
from bespeak.text.diagnostics.diagnostic import declared_in
from bespeak.text.diagnostics.page import page_of


def test_rules_are_registered_and_say_why() -> None:
    for rule_id, rule in declared_in(rules).items():
        assert all_rules()[rule_id] is rule
        assert page_of(rule).why
