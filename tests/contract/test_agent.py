from __future__ import annotations

import pytest

from bespeak.contract.agent import Agent


@pytest.mark.requirement("API-16.4-1")
def test_agent_does_not_consent_to_wildcards_by_default() -> None:
    assert Agent(agent_id="a" * 64, name="Clerk").wildcards is False


def test_manifest_shows_the_identity_of_an_agent_and_not_its_scopes() -> None:
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
def test_label_is_valid_in_a_uri(name: str, label: str) -> None:
    assert Agent(agent_id="a" * 64, name=name).label == label


@pytest.mark.parametrize(
    ("status", "tier", "shown"),
    [("active", 1, True), ("active", None, True), ("active", 3, False), ("suspended", 1, False)],
)
def test_active_and_non_experimental_agents_are_discoverable(status: str, tier: int | None, shown: bool) -> None:
    assert Agent(agent_id="a" * 64, name="Clerk", status=status, trust_tier=tier).is_discoverable is shown
