"""PROPOSE on a server that does not negotiate."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.policy import Policies


@pytest.mark.requirement("CORE-4.6-1", "CORE-4.6-2")
@pytest.mark.requirement("API-8.7-4")
@pytest.mark.parametrize(
    "body",
    [
        None,
        {"proposed_method": "AUDIT", "signature": {}, "intent": "Audit a stay."},
        {"endpoint": {"method": "AUDIT", "path": "/stays"}},
        {"method": "PROPOSE", "parameters": {"proposal": {"method": "AUDIT", "path": "/stays"}, "session_id": "s"}},
        {"name": "AUDIT", "parameters": {"subject": "string"}},
        {"endpoint": {}, "negotiation_id": "x", "zork": 1},
        {"proposal": "text"},
    ],
)
def test_every_form_of_proposal_is_rejected_with_the_reason(body: Any) -> None:
    reply = build().send("PROPOSE", "/", body)
    assert reply.status == 463
    for place in (reply.json, reply.error):
        assert place["reason"] == "synthesis-disabled"
        assert place["explanation"]


@pytest.mark.requirement("API-17.2-2")
def test_a_proposal_is_read_in_its_own_media_type() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    wanted = {"endpoint": {"method": "RESERVE", "path": "/room"}}
    reply = bench.send("PROPOSE", "/", wanted, content_type="application/vnd.agtp.endpoint+json")
    assert (reply.status, reply.error["similar_endpoints"][0]["path"]) == (463, "/room")


@pytest.mark.requirement("API-10.2-1")
def test_the_rejection_points_at_similar_endpoints() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), make_endpoint("QUERY", "/menus", echo))
    reply = bench.send("PROPOSE", "/", {"endpoint": {"method": "RESERVE", "path": "/room"}})
    assert reply.error["similar_endpoints"][0]["path"] == "/room"


def test_a_proposal_is_not_discovery_so_every_caller_gets_the_reason() -> None:
    assert build(policies=Policies(anonymous_discovery=False)).send("PROPOSE", "/").status == 463


@pytest.mark.requirement("API-8.7-2")
def test_a_caller_without_discovery_learns_no_endpoint_by_proposing() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), policies=Policies(anonymous_discovery=False))
    wanted = {"endpoint": {"method": "RESERVE", "path": "/room"}}
    assert "similar_endpoints" not in bench.send("PROPOSE", "/", wanted).error
    assert bench.send("PROPOSE", "/", wanted, agent_id=AGENT).error["similar_endpoints"]
