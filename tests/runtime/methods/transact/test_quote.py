"""QUOTE estimates a call from its contract and from earlier calls, and makes none."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.cost import Cost

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


@pytest.mark.requirement("METHODS-5.1-6")
async def test_a_call_that_would_be_refused_has_no_price() -> None:
    _, endpoint = counted()
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        unknown = await quote(bench, "/cellars")
        assert (unknown.status, unknown.error["code"]) == (404, "endpoint-not-found")
        invalid = await quote(bench, parameters={"room": 12})
        assert (invalid.status, invalid.error["code"]) == (422, "invalid-parameters")
