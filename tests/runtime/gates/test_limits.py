"""429: which buckets count, in which order, and the refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint

from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call
from bespeak.runtime.gates.authority import agent_rate_gate
from bespeak.runtime.rate import Rates

ONCE = Rate(1, "min", 1)
OTHER = "b" * 64


class Limited:
    """A service with limits, whose clock is moved by hand."""

    def __init__(self, **limits: Any) -> None:
        self.now = 0
        rates = RateLimits(**limits)
        endpoints = [
            make_endpoint("QUERY", "/rooms", echo),
            make_endpoint("QUERY", "/beds", echo, scopes=("bed:read",)),
        ]
        self.bench: Bench = build(*endpoints, rate_limits=rates)
        self.bench.server.rates = Rates(rates, clock=lambda: self.now)

    def send(self, method: str = "QUERY", path: str = "/rooms", agent: str | None = AGENT, address: str = "") -> Reply:
        self.bench.connection = Connection(address=address)
        return self.bench.send(method, path, **({"agent_id": agent} if agent else {}))


def test_services_without_limits_and_agents_without_principals_have_none() -> None:
    assert build().server.rates is None
    service = Limited(principal=ONCE)
    assert [service.send().status for _ in range(3)] == [200, 200, 200]


@pytest.mark.requirement("CORE-6.1-7", "CORE-10.1-9")
def test_an_agent_over_its_rate_gets_the_limit_and_retry_after() -> None:
    service = Limited(agent=Rate(2, "min", 1))
    assert service.send().status == 200
    reply = service.send()
    assert (reply.status, reply.error["code"]) == (429, "rate-limited")
    assert (reply.error["limit"], reply.error["scope"]) == ("2/min burst 1", "agent")
    assert reply.header("Retry-After") == "30"
    service.now += 29_500_000_000
    assert service.send().header("Retry-After") == "1"
    service.now += 500_000_000
    assert service.send().status == 200


def test_anonymous_callers_are_counted_by_address_and_agents_apart() -> None:
    service = Limited(agent=ONCE)
    assert [service.send(agent=agent).status for agent in (AGENT, OTHER, AGENT)] == [200, 200, 429]
    sent = [service.send(agent=None, address=address).status for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")]
    assert sent == [200, 200, 429]


@pytest.mark.requirement("CORE-10.1-10")
def test_the_address_is_counted_before_identification() -> None:
    service = Limited(address=ONCE)
    assert service.send(agent="not an id", address="192.0.2.1").status == 400
    assert service.send(agent="not an id", address="192.0.2.1").told("scope") == (429, "address")
    assert service.send(address="192.0.2.2").status == 200


def test_refused_calls_count_for_the_agent_and_not_for_the_endpoint() -> None:
    service = Limited(agent=ONCE)
    assert (service.send(path="/nowhere").status, service.send().status) == (404, 429)
    service = Limited(endpoints={("QUERY", "/beds"): ONCE})
    assert service.send(path="/beds").status == 455
    assert service.bench.send("QUERY", "/beds", scopes="bed:read").status == 200
    assert service.bench.send("QUERY", "/beds", scopes="bed:read").status == 429


def test_an_endpoint_has_a_limit_of_its_own_for_each_agent() -> None:
    service = Limited(endpoints={("QUERY", "/rooms"): ONCE})
    assert [service.send().status, service.send(agent=OTHER).status] == [200, 200]
    reply = service.send()
    assert (reply.status, reply.error["scope"]) == (429, "endpoint")
    assert "QUERY /rooms" in reply.error["message"]
    assert service.send("DESCRIBE", "/").status == 200


def test_a_request_that_its_face_has_counted_is_not_counted_again() -> None:
    service = Limited(agent=ONCE, address=ONCE, endpoints={("QUERY", "/rooms"): ONCE})
    request = Request("QUERY", "/rooms", "", {"agent-id": AGENT}, b"", Connection(), counted=True)
    answers = [service.bench.dispatcher(request) for _ in range(2)]
    assert [answer.status for answer in answers if isinstance(answer, Response)] == [200, 200]
    assert [service.send().status for _ in range(2)] == [200, 429]


@pytest.mark.requirement("CORE-10.1-9")
@pytest.mark.parametrize("agents", [(AGENT, OTHER), (AGENT, AGENT)])
def test_the_agents_of_a_principal_share_its_limit(agents: tuple[str, str]) -> None:
    service = Limited(principal=ONCE)
    server = service.bench.server
    refused = []
    for agent in agents:
        call = Call(_request(service), server)
        call.principal = Principal(agent_id=agent, principal_id="acme")
        refused.append(agent_rate_gate(call))
    assert refused[0] is None
    assert refused[1].details["scope"] == "principal"


def test_a_refused_call_of_an_agent_does_not_cost_its_principal() -> None:
    service = Limited(agent=ONCE, principal=Rate(2, "min", 2))
    server = service.bench.server
    outcomes = []
    for agent in (AGENT, AGENT, AGENT, OTHER):
        call = Call(_request(service), server)
        call.principal = Principal(agent_id=agent, principal_id="acme")
        refused = agent_rate_gate(call)
        outcomes.append(refused.details["scope"] if refused else None)
    assert outcomes == [None, "agent", "agent", None]


def test_a_limit_for_no_endpoint_is_reported_at_the_start() -> None:
    findings = build(rate_limits=RateLimits(endpoints={("BOOK", "/nowhere"): ONCE})).findings
    assert [(found.rule, found.severity) for found in findings] == [("Y821", "warning")]


def _request(service: Limited) -> Request:
    return Request("QUERY", "/rooms", "", {}, b"", service.bench.connection)


def priced(declared: Mapping[str, Any]) -> Bench:
    cost, faults = read_cost(declared)
    assert not faults
    return build(replace(make_endpoint("QUERY", "/rooms", echo), cost=cost))


@pytest.mark.requirement("CORE-6.1-8")
def test_a_cost_above_the_limit_is_a_456_with_both_amounts() -> None:
    reply = priced({"tokens": 500, "USD": "0.02"}).send("QUERY", "/rooms", budget_limit="USD=0.01, tokens=500, GBP=0")
    assert (reply.status, reply.error["code"]) == (456, "budget-exceeded")
    assert reply.error["cost"] == {"calls": "1", "tokens": "500", "USD": "0.02"}
    assert (reply.error["limit"], reply.error["exceeded"]) == ({"USD": "0.01", "tokens": "500", "GBP": "0.00"}, ["USD"])
    assert "0.02 USD (limit 0.01)" in reply.error["message"]


@pytest.mark.parametrize("limit", ["USD=0.02", "tokens=1000000", "EUR=0, compute-seconds=0", "calls=1"])
def test_a_cost_within_the_limit_or_in_other_units_passes(limit: str) -> None:
    assert priced({"tokens": 500, "USD": "0.02"}).send("QUERY", "/rooms", budget_limit=limit).status == 200


def test_every_call_is_one_call() -> None:
    bench = priced({})
    assert bench.send("QUERY", "/rooms", budget_limit="calls=1, tokens=0").status == 200
    assert bench.send("QUERY", "/rooms", budget_limit="calls=0").error["exceeded"] == ["calls"]
    assert priced({"calls": 3}).send("QUERY", "/rooms", budget_limit="calls=2").status == 456


@pytest.mark.parametrize("limit", ["", "tokens", "gold=1", "tokens=1,tokens=2", "USD=0.001", "x" * 5000])
def test_a_limit_that_cannot_be_read_is_a_400_that_names_the_entry(limit: str) -> None:
    reply = priced({"tokens": 500}).send("QUERY", "/rooms", budget_limit=limit)
    assert (reply.status, reply.error["code"]) == (400, "invalid-budget-limit")
    assert reply.error["entry"] == limit.rpartition(",")[2][:80]
    assert len(reply.response.body) < 600


def test_costs_are_sent_with_every_answer_and_not_asked_without_authority() -> None:
    bench = priced({"tokens": 500, "USD": "0.02"})
    assert bench.send("QUERY", "/rooms").header("Cost-Estimate") == "tokens=500, USD=0.02"
    assert bench.send("QUERY", "/rooms", budget_limit="USD=0").header("Cost-Estimate") == "tokens=500, USD=0.02"
    assert bench.send("DESCRIBE").header("Cost-Estimate") is None
    bench = build(make_endpoint("QUERY", "/rooms", echo, scopes=("room:read",)))
    assert bench.send("QUERY", "/rooms", budget_limit="gold=1").status == 262


def test_describe_lists_the_units_in_use() -> None:
    def units(bench: Bench) -> list[str]:
        found: list[str] = bench.send("DESCRIBE", body={"capability_domains": "budget"}).json["result"][
            "budget_units_accepted"
        ]
        return found

    assert units(build()) == ["calls"]
    assert units(priced({"USD": "0.02", "tokens": 500})) == ["tokens", "USD", "calls"]
