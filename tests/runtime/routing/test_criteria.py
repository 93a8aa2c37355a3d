"""Handlers that fit are ranked by what the criteria prefer, from what was declared and measured."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

pytestmark = pytest.mark.anyio

CALLS = ["FETCH /a", "FETCH /b"]


async def best(bench: StatefulBench, **criteria: Any) -> Any:
    reply = await bench.send("ROUTE", "/", {"payload": {}, "criteria": criteria, "candidates": CALLS})
    return reply.json.get("result", {}).get("handler", reply.status)


async def test_what_was_measured_decides() -> None:
    endpoints = [make_endpoint("FETCH", path, lambda _: {}) for path in ("/a", "/b")]
    async with keeping(*endpoints, methods=("ROUTE",)) as bench:
        for _ in range(3):
            bench.bench.server.part("statistics").note(("FETCH", "/a"), 50.0, 200)
            bench.bench.server.part("statistics").note(("FETCH", "/b"), 10.0, 200)
        assert await best(bench, prefer="latency") == "FETCH /b"
        assert await best(bench, prefer="load") == "FETCH /b"
        assert await best(bench, prefer="order") == "FETCH /a"
        assert await best(bench, max_latency=20, prefer="order") == "FETCH /b"
        assert await best(bench, max_latency=0.001) == 404


async def test_the_measured_cost_decides_if_none_is_declared() -> None:
    endpoints = [make_endpoint("FETCH", path, lambda _: {}) for path in ("/a", "/b")]
    async with keeping(*endpoints, methods=("ROUTE",)) as bench:
        assert await best(bench, max_cost=5) == 404
        await bench.send("FETCH", "/b")
        assert await best(bench, prefer="cost") == "FETCH /b"
        assert await best(bench, max_cost=3600) == "FETCH /b"
        assert await best(bench, max_cost=3600, cost_unit="tokens") == 404
