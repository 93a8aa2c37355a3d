"""What every module that declares reader rules promises."""

from __future__ import annotations

from types import ModuleType

from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.page import page_of


def assert_complete(module: ModuleType) -> None:
    """Check that the rules of a module are declared in the order of ids, and that each says why and what to do."""
    rules = declared_in(module).values()
    assert [value for value in vars(module).values() if isinstance(value, Rule)] == list(rules)
    assert [rule.id for rule in rules if not rule.summary.endswith(".")] == []
    assert [rule.id for rule in rules if page_of(rule).why.count(". ") < 1 or not page_of(rule).why.endswith(".")] == []
