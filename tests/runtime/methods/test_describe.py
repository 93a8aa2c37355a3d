"""DESCRIBE: capabilities of the server, identity of a hosted agent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.agent import Agent


@pytest.mark.requirement("CORE-4.3-2", "CORE-4.3-3")
def test_the_capability_document_covers_all_domains_or_those_asked_for() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    document = bench.send("DESCRIBE", "/").json["result"]
    assert document.keys() == {"methods", "modalities", "tools", "version", "budget_units_accepted", "zones_accepted"}
    assert "BOOK" in document["methods"]
    assert document["tools"] == ["BOOK /room"]
    assert document["version"] == "1.0"
    assert bench.send("DESCRIBE", "/", {"capability_domains": "zones, version"}).json["result"] == {
        "zones_accepted": [],
        "version": "1.0",
    }


@pytest.mark.requirement("CORE-4.3-3")
def test_an_unknown_domain_is_refused_with_the_valid_ones() -> None:
    reply = build().send("DESCRIBE", "/", {"capability_domains": ["moods"]})
    assert (reply.status, reply.error["unknown"]) == (422, ["moods"])


@pytest.mark.requirement("CORE-4.3-4")
def test_the_least_version_is_compared_by_numbers() -> None:
    for least, satisfied in (("1.0", True), ("0.9", True), ("1.10", False), ("2", False)):
        result = build().send("DESCRIBE", "/", {"version_min": least}).json["result"]
        assert result["version_min_satisfied"] is satisfied


def test_a_hosted_agent_gets_its_own_document() -> None:
    agent = Agent(agent_id=AGENT, name="concierge", document={"agent_id": AGENT, "name": "concierge"})
    reply = build(agents=(agent,)).send("DESCRIBE", "/", agent_id=AGENT)
    assert reply.header("Content-Type") == "application/vnd.agtp.identity+json"
    assert (reply.json["agent_id"], reply.json["name"], reply.json["status"]) == (AGENT, "concierge", "active")
    hidden = build(agents=(agent,), agent_disclosure="private").send("DESCRIBE", "/", agent_id=AGENT)
    assert "methods" in hidden.json["result"]


@pytest.mark.requirement("API-14.1-2")
def test_unreviewed_endpoints_are_named_in_manifest_and_description() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), replace(make_endpoint("FIND", "/room", echo), reviewed=False))
    assert bench.send("DESCRIBE", "/").json["result"]["unreviewed"] == ["FIND /room"]
    listed = {one["method"]: one for one in bench.send("DISCOVER", "/").json["endpoints"] if one["path"] == "/room"}
    assert listed["FIND"]["reviewed"] is False
    assert "reviewed" not in listed["BOOK"]
