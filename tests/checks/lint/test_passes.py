"""The table of passes."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import pytest
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.rule_examples import example_document

from bespeak.checks.lint import registration, rule_index, rules
from bespeak.checks.lint import registration as composition
from bespeak.checks.lint.document import read_subject
from bespeak.checks.lint.subject import Subject
from bespeak.text.diagnostics.diagnostic import declared_in
from bespeak.text.diagnostics.report import page_of

MODULES = sorted(found.name for found in iter_modules(rules.__path__))


@pytest.mark.parametrize("module", MODULES)
def test_every_check_of_every_rule_module_is_run(module: str) -> None:
    source = "".join(inspect.getsource(each) for each in (rule_index, registration, composition))
    members = vars(import_module(f"bespeak.checks.lint.rules.{module}"))
    called = [name for name in members if name.startswith("check") and f"{module}.{name}" in source]
    assert called, f"neither a pass nor registration runs {module}"


def test_every_rule_of_every_module_can_be_looked_up() -> None:
    modules = [import_module(f"bespeak.checks.lint.rules.{name}") for name in MODULES]
    assert declared_in(*modules) == rule_index.RULES


def test_findings_of_a_pass_name_its_rules() -> None:
    """The page of a rule names the pass that reports it (AGIS 9.1)."""
    wrong, reported = set(), set()
    for rule in rule_index.RULES.values():
        subject = read_subject(*example_document(rule)) if page_of(rule).notation == "yaml" else None
        if not isinstance(subject, Subject):
            continue
        context = replace(CONTEXT, agis=True, level=2, vocabulary=subject.agis.vocabulary if subject.agis else None)
        for step in rule_index.PASSES:
            found = [each for check in step.document for each in check(subject, context)]
            found += [each for check in step.endpoint for one in subject.endpoints for each in check(one, context)]
            reported |= {each.rule for each in found}
            wrong |= {(each.rule, step.number) for each in found if rule_index.pass_of(each.rule) != step.number}
    assert wrong == set()
    assert {"X901", "X920", "M210", "M230"} <= reported
