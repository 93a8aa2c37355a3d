"""Every rule has its entry."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import bespeak
from bespeak.checks.lint.registry import all_rules, find_rule, near_rules, pass_of, rule_texts

SOURCES: Final = {path: ast.parse(path.read_text("utf-8")) for path in Path(bespeak.__path__[0]).rglob("*.py")}


def test_rules_are_sorted_by_id() -> None:
    rules = all_rules()
    assert list(rules) == sorted(rules)
    assert all(rule.id == key and re.fullmatch(r"[A-Z][0-9]{3}", key) for key, rule in rules.items())


def test_no_two_rules_share_a_name() -> None:
    names = Counter(rule.name for rule in all_rules().values())
    assert [name for name, number in names.items() if number > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def declared_in(tree: ast.AST) -> Iterator[ast.Constant]:
    """Find the id in each `Rule("D101", ...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Rule":
            assert isinstance(node.args[0], ast.Constant)
            yield node.args[0]


def test_every_declared_rule_is_in_the_registry() -> None:
    declared = [id_.value for tree in SOURCES.values() for id_ in declared_in(tree)]
    assert sorted(declared) == list(all_rules())


@pytest.mark.parametrize("text", ["P302", "p302", " method-name-in-path ", "METHOD-NAME-IN-PATH"])
def test_a_rule_is_found_by_id_or_name(text: str) -> None:
    rule = find_rule(text)
    assert rule is not None
    assert rule.id == "P302"


def test_a_rule_that_is_not_there_is_none_and_has_neighbours() -> None:
    assert find_rule("P399") is None
    assert "P302" in near_rules("P3O2")
    assert "method-name-in-path" in near_rules("method-names-in-path")
    assert "unused-ignore" in near_rules("unused")
    assert near_rules("qqqqqqqq") == []


@pytest.mark.parametrize(
    ("rule", "number"),
    [("D120", 1), ("M210", 2), ("M230", 3), ("P320", 4), ("S410", 5), ("X901", 5), ("S450", 6), ("V501", 7)],
)
def test_a_rule_of_agis_has_its_pass(rule: str, number: int) -> None:
    assert pass_of(rule) == number


@pytest.mark.parametrize("rule", ["P302", "D101", "D190", "H701", "V551"])
def test_other_rules_have_none(rule: str) -> None:
    assert pass_of(rule) == 0


def test_reporters_get_every_rule() -> None:
    texts = rule_texts()
    assert texts.keys() == all_rules().keys()
    assert texts["P302"].name == "method-name-in-path"
