"""What can be found on a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.publication import Candidates

CONCIERGE = Agent(agent_id=AGENT, name="concierge", description="Helps guests.")


def candidates(*endpoints: Endpoint, agents: tuple[Agent, ...] = ()) -> Candidates:
    server = build(*endpoints, agents=agents).server
    return Candidates(server.routes.endpoints.values(), server.agents)


def test_endpoints_and_agents_are_found_but_not_the_floor() -> None:
    found = candidates(make_endpoint("BOOK", "/room", echo), agents=(CONCIERGE,))
    assert {entry["kind"] for entry in found.find("guests room", 10, agents=True)} == {"endpoint", "agent"}
    assert found.find("summarize", 10, agents=True) == []


def test_agents_that_are_not_disclosed_cannot_be_found() -> None:
    found = candidates(make_endpoint("BOOK", "/room", echo), agents=(CONCIERGE,))
    assert [entry["kind"] for entry in found.find("guests room", 10, agents=False)] == ["endpoint"]


@pytest.mark.requirement("CORE-4.2-5")
def test_an_agent_is_found_with_its_principal() -> None:
    [entry] = candidates(agents=(replace(CONCIERGE, principal="Acme"),)).find("guests", 10, agents=True)
    assert 0 < entry.pop("relevance") <= 1
    about = {"agent_id": AGENT, "name": "concierge", "description": "Helps guests.", "principal": "Acme"}
    assert entry == {"kind": "agent", **about}


@pytest.mark.requirement("CORE-7.4-2")
@pytest.mark.parametrize("fields", [{"status": "suspended"}, {"status": "retired"}, {"trust_tier": 3}])
def test_inactive_and_experimental_agents_are_not_found(fields: dict[str, Any]) -> None:
    assert candidates(agents=(replace(CONCIERGE, **fields),)).find("guests", 10, agents=True) == []


@pytest.mark.requirement("CORE-4.2-6")
def test_no_more_are_given_than_asked_for() -> None:
    endpoints = [make_endpoint("FETCH", f"/rooms/floor{number}", echo) for number in range(9)]
    assert len(candidates(*endpoints).find("rooms", 4, agents=True)) == 4
