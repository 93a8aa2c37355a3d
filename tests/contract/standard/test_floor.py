"""The constraints of DISCOVER, and the zones of its caller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.standard.floor import read_filter

BOOK = make_endpoint("BOOK", "/guests", echo, scopes=("booking:room",))
LISTING = make_endpoint("QUERY", "/guests", echo, capability="retrieval")
DESK = Agent(
    agent_id="d" * 64,
    name="desk",
    description="Helps guests.",
    scopes=("booking:*",),
    principal="Acme",
    principal_id="p-1",
    trust_tier=1,
    document={"capabilities": ["Booking", "billing"], "skills": ["concierge"], "geography": "EU"},
)
NIGHT = replace(
    DESK, agent_id="e" * 64, name="night", principal="Other", principal_id=None, trust_tier=None, document={}
)


def found(given: dict[str, Any], caller: dict[str, Any] | None = None, *agents: Agent) -> set[str]:
    known = () if caller is None else (Agent(agent_id=AGENT, name="caller", document=caller),)
    bench = build(BOOK, LISTING, agents=(DESK, NIGHT, *agents, *known), require_known_agents=False)
    reply = bench.send("DISCOVER", "/", {"criteria": "guests", **given}, agent_id=AGENT)
    assert reply.status == 200
    candidates = reply.json["result"]["candidates"]
    return {one.get("name") or f"{one['method']} {one['path']}" for one in candidates}


ENDPOINTS = {"BOOK /guests", "QUERY /guests"}


@pytest.mark.requirement("CORE-4.2-1")
@rows(
    "wanted, names",
    ({}, {*ENDPOINTS, "desk", "night"}),
    ({"capabilities": "retrieval"}, {"QUERY /guests"}),
    ({"capabilities": ["booking", "Concierge"]}, {"desk"}),
    ({"scopes": "booking:room"}, {*ENDPOINTS, "desk", "night"}),
    ({"scopes": ["calendar:read"]}, {"QUERY /guests"}),
    ({"tier": 1}, {"desk"}),
    ({"tier": 2}, {"desk", "night"}),
    ({"geography": ["eu", "us"]}, {"desk"}),
    ({"principal": "acme"}, {"desk"}),
    ({"principal": "P-1"}, {"desk"}),
    ({"principal": "Test"}, ENDPOINTS),
    ({"tier": 1, "principal": "Other"}, set()),
)
def test_candidates_meet_every_constraint(wanted: dict[str, Any], names: set[str]) -> None:
    assert found({"filter": wanted}) == names


@pytest.mark.parametrize(
    "wanted", [{"colour": "red"}, {"tier": "one"}, {"tier": 4}, {"scopes": [1]}, {"principal": ""}]
)
def test_a_constraint_that_cannot_be_applied_is_refused(wanted: dict[str, Any]) -> None:
    reply = build(BOOK).send("DISCOVER", "/", {"criteria": "guests", "filter": wanted}, agent_id=AGENT)
    assert reply.status == 422


@pytest.mark.requirement("CORE-4.2-2", "CORE-4.2-6")
@rows(
    "caller, seen",
    (None, False),
    ({}, False),
    ({"governance_zone": "default"}, False),
    ({"governance_zone": "zone:other"}, False),
    ({"governance_zone": "zone:finance"}, True),
)
def test_agents_outside_the_callers_zone_are_not_returned(caller: dict[str, Any] | None, seen: bool) -> None:
    vault = replace(DESK, agent_id="f" * 64, name="vault", document={"governance_zone": "zone:finance"})
    names = found({"max_results": 3}, caller, vault)
    assert ("vault" in found({}, caller, vault)) is seen
    assert len(names) == 3  # those left out do not use up the limit


def test_a_caller_without_a_document_is_in_the_default_zone() -> None:
    assert read_filter({}, None).zone == "default"
    assert read_filter({}, replace(DESK, document={"governance_zone": ["odd"]})).zone == "default"
