"""The rules for the answers of live services."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.checks.lint import served
from bespeak.checks.lint.rule_index import find_rule
from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.report import page_of

RULES = declared_in(served)
TESTS = Path(__file__).parents[2] / "agent" / "discovery"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_rule_is_known_and_a_host_breaks_it(rule: Rule) -> None:
    assert find_rule(rule.id) is rule
    tests = "test_served_rules.py" if rule.id < "W934" or rule is served.CUT else "test_agreement.py"
    assert f'"{rule.id}"' in (TESTS / tests).read_text("utf-8")


@pytest.mark.parametrize("rule", [one for one in RULES.values() if one.id < "W934" and page_of(one).bad])
def test_an_example_is_a_question_or_an_answer_of_http(rule: Rule) -> None:
    assert page_of(rule).notation == "http"
    assert all(piece.startswith(("GET /", "HEAD /", "HTTP/1.1 ")) for piece in (page_of(rule).bad, page_of(rule).good))
    assert page_of(rule).bad != page_of(rule).good


def test_ids_are_in_their_range_and_in_order() -> None:
    ids = [rule.id for rule in vars(served).values() if isinstance(rule, Rule)]
    assert ids == sorted(set(ids))
    assert all("W910" <= rule <= "W949" for rule in ids)
