"""Publication: every endpoint except internal ones, which still answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.protocol.exchange.headers import MEDIA_AGIS
from bespeak.runtime.publication import Candidates

OPEN = make_endpoint("FIND", "/rooms", echo, output={"type": "object"}, capability="discovery")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)
BESIDE = replace(make_endpoint("RECONCILE", "/rooms", echo), internal=True)


@pytest.fixture
def bench() -> Bench:
    return build(OPEN, HIDDEN, BESIDE)


def test_an_internal_endpoint_answers(bench: Bench) -> None:
    assert bench.send("AUDIT", "/ledger").status == 200


@pytest.mark.parametrize(
    ("method", "target", "body", "headers"),
    [
        ("DISCOVER", "/", None, {}),
        ("DISCOVER", "/", None, {"accept": MEDIA_AGIS}),
        ("DISCOVER", "/methods", None, {}),
        ("DISCOVER", "/", {"criteria": "audit the ledger, reconcile rooms"}, {"agent_id": AGENT}),
        ("DESCRIBE", "/", None, {}),
        ("BOOK", "/rooms", None, {}),
        ("BOOK", "/ledger", None, {}),
    ],
)
def test_no_document_and_no_refusal_names_an_internal_endpoint(
    bench: Bench, method: str, target: str, body: Any, headers: dict[str, str]
) -> None:
    reply = bench.send(method, target, body, **headers)
    text = reply.response.body.decode()
    # The path that was asked for may be repeated; that something answers there may not.
    assert "AUDIT" not in text
    assert "RECONCILE" not in text
    assert "ledger" not in text.replace("/ledger'", "").replace('"/ledger"', "")


def test_a_path_with_only_internal_endpoints_is_not_published(bench: Bench) -> None:
    assert bench.send("BOOK", "/ledger").status == 404
    assert bench.send("BOOK", "/rooms").error["allowed_methods_for_path"] == ["FIND"]


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
