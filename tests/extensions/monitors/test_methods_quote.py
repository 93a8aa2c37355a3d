"""QUOTE estimates a call from its contract and from earlier calls, and makes none."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.compositions import compose, given, item, recipe, step
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.limits import Cost
from bespeak.contract.procedure import Procedure
from bespeak.extensions.monitors.health import Sample
from bespeak.extensions.monitors.methods import quantile_times

pytestmark = pytest.mark.anyio


def counted(cost: Cost | None = None) -> tuple[list[Any], Any]:
    calls: list[Any] = []

    def book(given: dict[str, Any]) -> dict[str, Any]:
        calls.append(given)
        return {}

    endpoint = make_endpoint("BOOK", "/rooms/{room}", book, properties={"room": {"type": "string"}}, required=("room",))
    return calls, replace(endpoint, cost=cost)


async def quote(bench: StatefulBench, path: str = "/rooms/12", **fields: Any) -> Any:
    return await bench.send("QUOTE", "/", {"method": "BOOK", "path": path, "parameters": {}, **fields})


@pytest.mark.requirement("METHODS-5.1-1", "METHODS-5.1-2", "METHODS-5.1-5", "CORE-4.13-3")
async def test_a_declared_cost_is_the_most_and_nothing_is_executed() -> None:
    calls, endpoint = counted(Cost({"tokens": Decimal(500), "USD": Decimal("0.02")}))
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        reply = await quote(bench)
        result = reply.json["result"]
        assert (result["path"], result["basis"], result["confidence"]) == ("/rooms/{room}", "declared", 0.5)
        assert result["estimated_cost"]["tokens"] == {"min": 0.0, "expected": 500.0, "max": 500.0}
        assert reply.header("Cost-Estimate") == "tokens=500 USD=0.02 calls=1"
        assert calls == []


@pytest.mark.requirement("METHODS-5.1-4")
async def test_earlier_calls_tell_how_long_it_takes() -> None:
    calls, endpoint = counted()
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        assert (await quote(bench)).json["result"]["basis"] == "none"
        for _ in range(24):
            await bench.send("BOOK", "/rooms/12")
        result = (await quote(bench, budget_units=["compute-seconds"])).json["result"]
        assert (result["basis"], result["samples"], result["confidence"]) == ("measured", 24, 0.75)
        seconds = result["estimated_cost"]["compute_seconds"]
        assert 0 < seconds["min"] <= seconds["expected"] <= seconds["max"]
        assert len(calls) == 24


FIND = make_endpoint("FIND", "/rooms", echo)
PRICED = {"tokens": {"min": 0, "expected": 1000, "max": 1000}, "calls": {"min": 2, "expected": 2, "max": 2}}


@pytest.mark.parametrize(("method", "member"), [("CHAIN", "steps"), ("BATCH", "calls")])
async def test_the_steps_of_a_workflow_are_counted(method: str, member: str) -> None:
    calls, endpoint = counted(Cost({"tokens": Decimal(500)}))
    async with keeping(endpoint, FIND, methods=("QUOTE", method)) as bench:
        steps = [{"method": "BOOK", "path": f"/rooms/{room}"} for room in (12, 14)]
        reply = await quote(bench, path="/", method=method, parameters={member: steps})
        assert reply.json["result"]["estimated_cost"] == PRICED
        assert reply.header("Cost-Estimate") == "tokens=1000 calls=2"
        unknown = await quote(bench, path="/", method=method, parameters={member: [{"method": "FIND", "path": "/x"}]})
        assert (unknown.status, unknown.error["code"]) == (404, "endpoint-not-found")
        assert calls == []


async def test_conditions_and_repetitions_of_steps_widen_the_range() -> None:
    async with keeping(FIND, methods=("QUOTE", "CHAIN")) as bench:
        find = {"method": "FIND", "path": "/rooms"}
        steps = [find, {**find, "when": "1 > 2"}, {**find, "on_failure": "retry"}]
        reply = await quote(bench, path="/", method="CHAIN", parameters={"steps": steps})
        assert reply.json["result"]["estimated_cost"]["calls"] == {"min": 2, "expected": 3, "max": 7}


async def alone() -> dict[str, int]:
    """Do nothing."""
    return {}


async def test_the_procedure_of_run_is_counted() -> None:
    calls, endpoint = counted(Cost({"tokens": Decimal(500)}))
    steps = tuple({"method": "BOOK", "path": f"/rooms/{room}"} for room in (12, 14))
    procedures = (Procedure(procedure_id="two-rooms", steps=steps), Procedure(procedure_id="alone", target=alone))
    async with keeping(endpoint, methods=("QUOTE", "RUN"), procedures=procedures) as bench:
        reply = await quote(bench, path="/", method="RUN", parameters={"procedure_id": "two-rooms"})
        assert reply.json["result"]["estimated_cost"] == PRICED
        single = await quote(bench, path="/", method="RUN", parameters={"procedure_id": "alone"})
        assert single.json["result"]["estimated_cost"] == {"calls": {"min": 1, "expected": 1, "max": 1}}
        unknown = await quote(bench, path="/", method="RUN", parameters={"procedure_id": "none"})
        assert (unknown.status, unknown.error["code"]) == (404, "endpoint-not-found")
        assert calls == []


@pytest.mark.parametrize(
    ("own", "tokens", "header"),
    [(None, 1000, "tokens=1000 calls=2"), (2000, 2000, "tokens=2000 calls=2"), (300, 1000, "tokens=1000 calls=2")],
)
async def test_the_steps_of_a_recipe_are_counted(own: int | None, tokens: int, header: str) -> None:
    calls, endpoint = counted(Cost({"tokens": Decimal(500)}))
    made = recipe(
        step("BOOK /rooms/{room}", take={"room": "12"}),
        step("BOOK /rooms/{room}", take={"room": item()}, for_each=given("more")),
    )
    more = {"more": {"type": "array", "items": {"type": "string"}}}
    composed = compose("RESERVE", "/suites", "r", properties=more)
    composed = replace(composed, cost=None if own is None else Cost({"tokens": Decimal(own)}))
    async with keeping(endpoint, composed, methods=("QUOTE",), recipes=(made,)) as bench:
        reply = await quote(bench, path="/suites", method="RESERVE", parameters={"more": ["14"]})
        assert reply.json["result"]["estimated_cost"]["tokens"]["expected"] == tokens
        assert reply.header("Cost-Estimate") == header
        assert calls == []


async def test_a_method_without_a_path_means_the_endpoint_that_takes_the_parameters() -> None:
    halls = make_endpoint("BOOK", "/halls", echo, properties={"hall": {"type": "string"}}, required=("hall",))
    _, endpoint = counted(Cost({"tokens": Decimal(500)}))
    async with keeping(endpoint, halls, FIND, methods=("QUOTE",)) as bench:
        for method, parameters, path in (
            ("BOOK", {"room": "12"}, "/rooms/{room}"),
            ("BOOK", {"hall": "A"}, "/halls"),
            ("FIND", {}, "/rooms"),
            ("QUOTE", {"method": "FIND", "parameters": {}}, "/"),
        ):
            reply = await bench.send("QUOTE", "/", {"method": method, "parameters": parameters})
            assert (reply.status, reply.json["result"]["path"]) == (200, path)
        doubtful = await bench.send("QUOTE", "/", {"method": "BOOK", "parameters": {}})
        assert (doubtful.status, doubtful.error["paths"]) == (422, ["/rooms/{room}", "/halls"])
        unknown = await bench.send("QUOTE", "/", {"method": "CANCEL", "parameters": {}})
        assert unknown.status == 404


@pytest.mark.requirement("METHODS-5.1-4")
async def test_units_without_an_estimate_are_named_and_the_calls_are_told() -> None:
    _, endpoint = counted()
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        reply = await quote(bench, budget_units=["tokens", "EUR"])
        result = reply.json["result"]
        assert (reply.header("Cost-Estimate"), list(result["estimated_cost"])) == ("calls=1", ["calls"])
        assert result["unestimated"] == ["tokens", "EUR"]
        assert (await quote(bench, budget_units=["calls"])).json["result"]["unestimated"] == []


@pytest.mark.requirement("METHODS-5.1-4", "METHODS-5.1-6")
async def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    _, endpoint = counted()
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        reply = await quote(bench, budget_units=["tokens", "bananas"])
        assert (reply.status, reply.error["code"], reply.error["field"]) == (422, "invalid-parameters", "/budget_units")
        assert reply.error["units"] == ["tokens", "compute-seconds", "USD", "EUR", "GBP", "calls"]


@pytest.mark.requirement("METHODS-5.1-5")
def test_times_do_not_go_beyond_what_was_measured() -> None:
    low, middle, high = quantile_times([Sample(2, 0.001), Sample(2, 10.0)])
    assert Decimal("0.001") <= low < middle < high <= Decimal(10)


@pytest.mark.requirement("METHODS-5.1-6")
async def test_a_call_that_would_be_refused_has_no_price() -> None:
    _, endpoint = counted()
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        unknown = await quote(bench, "/cellars")
        assert (unknown.status, unknown.error["code"]) == (404, "endpoint-not-found")
        invalid = await quote(bench, parameters={"room": 12})
        assert (invalid.status, invalid.error["code"]) == (422, "invalid-parameters")
