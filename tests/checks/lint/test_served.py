"""The rules for the answers of live services."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.checks.lint import served
from bespeak.checks.lint.rule_index import find_rule
from bespeak.checks.lint.served import CUT
from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.page import page_of

RULES = tuple(rule for rule in declared_in(served).values() if rule.id < "W934")

TESTS = Path(__file__).parents[2] / "agent" / "discovery" / "test_served_rules.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_known_and_has_a_host_that_breaks_it(rule: Rule) -> None:
    assert find_rule(rule.id) is rule
    assert f'"{rule.id}"' in TESTS.read_text("utf-8")


@pytest.mark.parametrize("rule", [rule for rule in RULES if page_of(rule).bad], ids=lambda rule: rule.id)
def test_an_example_is_a_question_or_an_answer_of_http(rule: Rule) -> None:
    assert page_of(rule).notation == "http"
    assert all(piece.startswith(("GET /", "HEAD /", "HTTP/1.1 ")) for piece in (page_of(rule).bad, page_of(rule).good))
    assert page_of(rule).bad != page_of(rule).good


def test_ids_are_in_their_range_and_in_order() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert ids[0] >= "W910"
    assert ids[-1] < "W934"


SERVED_AGREEMENT_RULES = tuple(rule for rule in declared_in(served).values() if rule.id >= "W934")

SERVED_AGREEMENT_TESTS = Path(__file__).parents[2] / "agent" / "discovery"


@pytest.mark.parametrize("rule", SERVED_AGREEMENT_RULES, ids=lambda rule: rule.id)
def test_a_rule_is_known_and_has_documents_that_break_it(rule: Rule) -> None:
    assert find_rule(rule.id) is rule
    tests = "test_served_rules.py" if rule is CUT else "test_agreement.py"
    assert f'"{rule.id}"' in (SERVED_AGREEMENT_TESTS / tests).read_text("utf-8")


def test_served_agreement_ids_are_in_their_range_and_in_order() -> None:
    ids = [rule.id for rule in SERVED_AGREEMENT_RULES]
    assert ids == sorted(set(ids))
    assert ids[0] >= "W934"
    assert ids[-1] <= "W949"
