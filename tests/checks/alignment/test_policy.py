"""Bands of scores."""

from __future__ import annotations

from bespeak.checks.alignment.policy import Policy


def test_score_is_in_one_of_four_bands() -> None:
    policy = Policy()
    assert [policy.band(score) for score in (0.95, 0.94, 0.75, 0.74, 0.6, 0.59)] == [
        *("accept", "policy", "policy", "ask", "ask", "reject")
    ]
    assert policy.band(0.7, of_property=True) == "policy"


def test_policy_may_demand_a_confirmation_below_the_highest_band() -> None:
    assert Policy().accepts("policy")
    assert not Policy(unconfirmed=False).accepts("policy")
    assert Policy(unconfirmed=False).accepts("accept")
    assert not Policy().accepts("ask")
