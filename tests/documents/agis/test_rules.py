"""The rules of pass 1: each has its texts, and its own examples break it and keep it."""

from __future__ import annotations

import pytest

from bespeak.documents import rules
from bespeak.documents.agis.document import check_structure
from bespeak.documents.rules import COMMENTS_LOST
from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.report import page_of
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

RULES = tuple(rule for name, rule in declared_in(rules).items() if name.startswith("D12"))


def rules_broken_by(text: str) -> set[str]:
    tree = parse_yaml(text, "menu.agis")
    assert isinstance(tree, YamlTree), tree
    return {finding.rule for finding in check_structure(tree)}


def within(rule: Rule, piece: str) -> str:
    """Put a piece of an endpoint into a whole document."""
    if not piece.startswith("semantic"):
        return piece
    lines = piece.splitlines()
    return "endpoints:\n  - method: BOOK\n    path: /room\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_has_summary_reason_and_source(rule: Rule) -> None:
    assert page_of(rule).summary
    assert page_of(rule).why
    assert rule.source
    assert rule.severity == {"MUST": "error", "SHOULD": "warning", "style": "info"}[rule.normative]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule is not COMMENTS_LOST], ids=lambda rule: rule.id)
def test_the_examples_of_a_rule_break_it_and_keep_it(rule: Rule) -> None:
    assert rule.id in rules_broken_by(within(rule, page_of(rule).bad))
    # The good one is a piece of a document: other rules miss the rest.
    assert rules_broken_by(within(rule, page_of(rule).good)) <= {"D120", "D127"} - ({rule.id} - {"D120"})
