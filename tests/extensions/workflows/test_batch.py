"""BATCH runs independent calls and reports the outcome of each."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.handler import Refusal

pytestmark = pytest.mark.anyio

PROPERTIES = {"room": {"type": "string"}}


def book(given: dict[str, Any]) -> dict[str, Any]:
    if given["room"] == "taken":
        raise Refusal("room_unavailable", "Taken.")
    return {"reservation": given["room"]}


ENDPOINT = make_endpoint(
    "BOOK", "/rooms", book, impact="reversible", properties=PROPERTIES, required=("room",), errors=("room_unavailable",)
)


async def send(bench: StatefulBench, *rooms: str, **fields: Any) -> Any:
    calls = [{"method": "BOOK", "path": "/rooms", "parameters": {"room": room}} for room in rooms]
    return await bench.send("BATCH", "/", {"calls": calls, **fields})


@pytest.mark.requirement("METHODS-8.2-2", "METHODS-8.2-3", "METHODS-8.2-4")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_every_call_has_an_outcome_in_order(mode: str) -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, "1", "taken", "3", execution_mode=mode, partial_success=True)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["succeeded"], result["failed"]) == (200, "partial", 2, 1)
        assert [one.get("output") for one in result["results"]] == [{"reservation": "1"}, None, {"reservation": "3"}]
        assert result["results"][1]["error"]["code"] == "room_unavailable"


@pytest.mark.requirement("METHODS-8.2-5")
async def test_without_partial_success_a_failure_fails_the_batch_and_the_rest_is_reported() -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, "1", "taken")
        assert (reply.status, reply.error["code"], reply.error["succeeded"]) == (422, "batch-failed", 1)
        stopped = await send(bench, "taken", "2", execution_mode="sequential")
        assert [one["status"] for one in stopped.error["results"]] == ["failed", "pending"]


async def test_a_large_batch_runs_completely() -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, *map(str, range(200)))
        assert (reply.json["result"]["status"], reply.json["result"]["succeeded"]) == ("completed", 200)


@pytest.mark.requirement("METHODS-8.2-5")
async def test_a_call_of_nothing_is_refused_before_anything_runs() -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await bench.send("BATCH", "/", {"calls": [{"method": "BOOK", "path": "/cellars"}]})
        assert (reply.status, reply.error["code"]) == (422, "endpoint-not-found")


@pytest.mark.parametrize("reference", [{"$from": 3}, {"$from": "1.room"}, {"$expr": 3}, {"$from": "1", "x": 2}])
async def test_calls_that_refer_to_others_are_refused_and_none_runs(reference: dict[str, Any]) -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        calls = [{"method": "BOOK", "path": "/rooms", "parameters": {"room": one}} for one in ("1", reference)]
        refused = await bench.send("BATCH", "/", {"calls": calls})
        assert (refused.status, refused.error["code"]) == (422, "invalid-calls")
