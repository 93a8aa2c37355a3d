"""Bands of scores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.semantics.alignment.policy import MappingRule, Policy, Provenance, resolve


def test_confidence_is_in_one_of_four_bands_and_below_the_highest_may_need_a_confirmation() -> None:
    policy = Policy()
    assert [policy.band(confidence) for confidence in (0.9, 0.89, 0.5, 0.49, 0.25, 0.24)] == [
        *("accept", "policy", "policy", "ask", "ask", "reject")
    ]
    assert Policy().accepts("policy")
    assert not Policy(unconfirmed=False).accepts("policy")
    assert Policy(unconfirmed=False).accepts("accept")
    assert not Policy().accepts("ask")


def rule(target: str, confidence: float, source: str = "a:1", **more: Any) -> MappingRule:
    return MappingRule(source=source, target=target, confidence=confidence, **more)


def chosen(*rules: MappingRule, policy: Policy | None = None) -> list[str]:
    return [one.target for one in resolve(rules, policy or Policy()).chosen]


@pytest.mark.requirement("IOA-7.3-1")
def test_local_policy_comes_first_then_confidence_then_override() -> None:
    sure, ours = rule("b:1", 0.9), rule("b:2", 0.5, provenance=Provenance(source="ours"))
    decided = rule("b:3", 0.9, override=True)
    policy = Policy(priorities={"ours": 1})
    assert chosen(sure, ours, decided, policy=policy) == ["b:2"]
    assert chosen(sure, ours) == ["b:1"]
    assert chosen(sure, decided) == ["b:3"]
    assert chosen(rule("b:1", 0.91), decided) == ["b:1"]


def test_order_is_configurable_with_ties_by_iri_and_broader_terms_do_not_exclude_each_other() -> None:
    sure, decided = rule("b:1", 0.99), rule("b:2", 0.5, override=True)
    assert chosen(sure, decided, policy=Policy(order=("override", "confidence"))) == ["b:2"]
    assert chosen(sure, decided, policy=Policy(priorities={"override": 1})) == ["b:2"]
    assert chosen(rule("b:2", 0.9), rule("b:1", 0.9)) == chosen(rule("b:1", 0.9), rule("b:2", 0.9)) == ["b:1"]
    assert chosen(rule("b:1", 0.9), rule("b:2", 0.5, relation="broader")) == ["b:1", "b:2"]


def test_target_has_one_source() -> None:
    rules = (rule("b:1", 0.9), rule("b:1", 0.8, source="a:2"))
    resolution = resolve(rules)
    assert resolution.chosen == rules[:1]
    assert [(one.rule.source, one.winner.source) for one in resolution.lost] == [("a:2", "a:1")]


RULES = st.builds(rule, st.sampled_from(("b:1", "b:2", "b:3")), st.floats(0, 1), st.sampled_from(("a:1", "a:2", "a:3")))


@given(st.lists(RULES), st.randoms(use_true_random=False))
def test_no_term_is_used_twice_in_whatever_order_rules_come(rules: list[MappingRule], chance: Any) -> None:
    first = resolve(rules).chosen
    assert len({one.source for one in first}) == len({one.target for one in first}) == len(first)
    chance.shuffle(rules)
    assert resolve(rules).chosen == first
