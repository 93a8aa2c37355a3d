"""The table of passes."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from bespeak.checks.lint import passes, registration, rules

MODULES = sorted(found.name for found in iter_modules(rules.__path__))


@pytest.mark.parametrize("module", MODULES)
def test_every_check_of_every_rule_module_is_run(module: str) -> None:
    source = inspect.getsource(passes) + inspect.getsource(registration)
    members = vars(import_module(f"bespeak.checks.lint.rules.{module}"))
    called = [name for name in members if name.startswith("check") and f"{module}.{name}" in source]
    assert called, f"neither a pass nor registration runs {module}"


def test_every_rule_of_every_module_can_be_looked_up() -> None:
    found = {rule.id for name in MODULES for rule in import_module(f"bespeak.checks.lint.rules.{name}").RULES}
    assert found == set(passes.RULES)
