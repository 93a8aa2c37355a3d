"""What every module that declares reader rules promises."""

from __future__ import annotations

from types import ModuleType

from bespeak.text.diagnostics.rule import Rule


def assert_complete(module: ModuleType) -> None:
    """Check that `RULES` has each rule of the module in the order of ids, and that each says why and what to do."""
    assert tuple(value for value in vars(module).values() if isinstance(value, Rule)) == module.RULES
    assert sorted(module.RULES, key=lambda rule: rule.id) == list(module.RULES)
    assert [rule.id for rule in module.RULES if not rule.summary.endswith(".")] == []
    assert [rule.id for rule in module.RULES if rule.why.count(". ") < 1 or not rule.why.endswith(".")] == []
