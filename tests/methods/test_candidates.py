"""What can be found on a server."""

from __future__ import annotations

from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.methods.candidates import Candidates

CONCIERGE = Agent(agent_id=AGENT, name="concierge", description="Helps guests.")


def test_endpoints_and_public_agents_are_found_but_not_the_floor() -> None:
    registry = build(make_endpoint("BOOK", "/room", echo), agents=(CONCIERGE,)).assembled.registry
    candidates = Candidates(registry)
    assert [entry["kind"] for entry in candidates.find("guests room", 10)] == ["endpoint", "agent"]
    assert candidates.find("summarize", 10) == []


def test_agents_that_are_not_disclosed_cannot_be_found() -> None:
    registry = build(agents=(CONCIERGE,), agent_disclosure="private").assembled.registry
    assert Candidates(registry).find("guests", 10) == []


def test_no_more_are_given_than_asked_for() -> None:
    endpoints = [make_endpoint("FETCH", f"/rooms/floor{number}", echo) for number in range(9)]
    assert len(Candidates(build(*endpoints).assembled.registry).find("rooms", 4)) == 4
