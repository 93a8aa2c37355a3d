"""456 and 400: the cost of an endpoint against what its caller allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.service import Bench, build, echo, make_endpoint

from bespeak.contract.limits import read_cost


def priced(declared: Mapping[str, Any]) -> Bench:
    cost, faults = read_cost(declared)
    assert not faults
    return build(replace(make_endpoint("QUERY", "/rooms", echo), cost=cost))


@pytest.mark.requirement("CORE-6.1-8")
def test_a_cost_above_the_limit_is_a_456_with_both_amounts() -> None:
    reply = priced({"tokens": 500, "USD": "0.02"}).send("QUERY", "/rooms", budget_limit="USD=0.01, tokens=500, GBP=0")
    assert (reply.status, reply.error["code"]) == (456, "budget-exceeded")
    assert reply.error["cost"] == {"calls": "1", "tokens": "500", "USD": "0.02"}
    assert reply.error["limit"] == {"USD": "0.01", "tokens": "500", "GBP": "0.00"}
    assert reply.error["exceeded"] == ["USD"]
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


def test_a_priced_endpoint_sends_its_cost_with_every_answer() -> None:
    bench = priced({"tokens": 500, "USD": "0.02"})
    assert bench.send("QUERY", "/rooms").header("Cost-Estimate") == "tokens=500, USD=0.02"
    assert bench.send("QUERY", "/rooms", budget_limit="USD=0").header("Cost-Estimate") == "tokens=500, USD=0.02"
    assert bench.send("DESCRIBE").header("Cost-Estimate") is None


def test_describe_lists_the_units_in_use() -> None:
    def units(bench: Bench) -> list[str]:
        found: list[str] = bench.send("DESCRIBE", body={"capability_domains": "budget"}).json["result"][
            "budget_units_accepted"
        ]
        return found

    assert units(build()) == ["calls"]
    assert units(priced({"USD": "0.02", "tokens": 500})) == ["tokens", "USD", "calls"]


def test_a_caller_without_authority_gets_no_budget_error() -> None:
    bench = build(make_endpoint("QUERY", "/rooms", echo, scopes=("room:read",)))
    assert bench.send("QUERY", "/rooms", budget_limit="gold=1").status == 262
