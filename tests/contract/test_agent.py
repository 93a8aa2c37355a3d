from __future__ import annotations

import pytest

from bespeak.contract.agent import Agent


@pytest.mark.requirement("API-16.4-1")
def test_an_agent_does_not_consent_to_wildcards_unless_it_says_so() -> None:
    assert Agent(agent_id="a" * 64, name="Clerk").wildcards is False


def test_a_manifest_shows_of_an_agent_who_it_is_and_not_what_it_may_do() -> None:
    agent = Agent(agent_id="a" * 64, name="Clerk", description="At the desk.", scopes=("booking:*",), wildcards=True)
    assert agent.reference() == {"agent_id": "a" * 64, "name": "Clerk", "description": "At the desk."}


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Clerk", "Clerk"),
        ("night_clerk-2", "night_clerk-2"),
        ("Clerk of Works", "Clerk-of-Works"),
        ("/../x?y#z", "x-y-z"),
        ("夜", "a" * 64),
        ("", "a" * 64),
        ("x" * 100, "x" * 64),
    ],
)
def test_a_label_can_stand_in_a_uri(name: str, label: str) -> None:
    assert Agent(agent_id="a" * 64, name=name).label == label


@pytest.mark.parametrize(
    ("status", "tier", "shown"),
    [("active", 1, True), ("active", None, True), ("active", 3, False), ("suspended", 1, False)],
)
def test_the_public_learns_of_active_agents_that_are_no_experiments(status: str, tier: int | None, shown: bool) -> None:
    assert Agent(agent_id="a" * 64, name="Clerk", status=status, trust_tier=tier).is_discoverable is shown
