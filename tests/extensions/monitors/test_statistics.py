"""Earlier calls are remembered by endpoint, the latest ones, and compared by the size of their input."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.extensions.monitors import statistics

pytestmark = pytest.mark.anyio


async def test_calls_of_about_the_same_size_are_preferred() -> None:
    endpoint = make_endpoint("FIND", "/rooms", lambda _: {}, properties={"text": {"type": "string"}})
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        costs = bench.bench.server.part("costs")
        for text in ["x"] * 10 + ["x" * 10_000] * 10:
            await bench.send("FIND", "/rooms", {"text": text})
        assert len(costs.find(("FIND", "/rooms"), 20)) == 10
        assert {one.size > 9_000 for one in costs.find(("FIND", "/rooms"), 10_000)} == {True}
        assert len(costs.find(("FIND", "/rooms"), 10_000_000)) == 20
        assert costs.find(("FIND", "/cellars"), 1) == []


async def test_refused_calls_are_not_counted_and_old_ones_are_forgotten() -> None:
    def find(given: dict[str, Any]) -> dict[str, Any]:
        return given

    endpoint = make_endpoint("FIND", "/rooms", find, properties={"n": {"type": "integer"}})
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        await bench.send("FIND", "/rooms", {"n": "x"}, agent=AGENT)
        assert bench.bench.server.part("costs").find(("FIND", "/rooms"), 1) == []
        for number in range(300):
            await bench.send("FIND", "/rooms", {"n": number})
        assert len(bench.bench.server.part("costs").find(("FIND", "/rooms"), 9)) == 256


async def test_few_endpoints_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MOST_KEYS", 2)
    endpoints = [make_endpoint("FIND", f"/rooms-{number}", lambda _: {}) for number in range(3)]
    async with keeping(*endpoints, methods=("QUOTE",)) as bench:
        for endpoint in endpoints:
            await bench.send("FIND", endpoint.path, {})
        costs = bench.bench.server.part("costs")
        assert [len(costs.find(endpoint.key, 1)) for endpoint in endpoints] == [0, 1, 1]


async def test_replayed_answers_are_not_counted() -> None:
    endpoint = make_endpoint("BOOK", "/room", lambda _: {}, impact="irreversible")
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        for _ in range(3):
            await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert len(bench.bench.server.part("costs").find(("BOOK", "/room"), 1)) == 1
