from __future__ import annotations

import pytest

from bespeak.contract.agent import Agent


@pytest.mark.requirement("API-16.4-1")
def test_an_agent_does_not_consent_to_wildcards_unless_it_says_so() -> None:
    assert Agent(agent_id="a" * 64, name="Clerk").wildcards is False


def test_a_manifest_shows_of_an_agent_who_it_is_and_not_what_it_may_do() -> None:
    agent = Agent(agent_id="a" * 64, name="Clerk", description="At the desk.", scopes=("booking:*",), wildcards=True)
    assert agent.reference() == {"agent_id": "a" * 64, "name": "Clerk", "description": "At the desk."}
