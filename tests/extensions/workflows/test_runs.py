"""What a caller sees of long work: 202 at once, the run by its Task-ID, its result by CHECK, and a list of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.workflows import engine
from bespeak.state.store.commands.records import CountOpen

pytestmark = pytest.mark.anyio

OTHER = "c" * 64
METHODS = ("CHAIN", "BATCH", "RUN", "PAUSE", "RESUME", "CANCEL", "CHECK", "RETRY")
BAKE = {"name": "bake", "method": "BOOK", "path": "/oven"}


class Oven:
    """An endpoint whose calls wait until the oven is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.fails = False

    async def bake(self, _: dict[str, Any]) -> dict[str, Any]:
        await self.opened.wait()
        if self.fails:
            raise ValueError("the oven is cold")
        return {"loaf": 1}


@asynccontextmanager
async def bakery(**fields: Any) -> AsyncIterator[tuple[Oven, StatefulBench]]:
    oven = Oven()
    endpoint = make_endpoint("BOOK", "/oven", oven.bake, impact="reversible")
    async with keeping(endpoint, methods=METHODS, **fields) as bench:
        yield oven, bench
        oven.opened.set()


async def begin(bench: StatefulBench, **headers: str) -> str:
    reply = await bench.send("CHAIN", "/", {"steps": [BAKE]}, prefer="respond-async", **headers)
    assert reply.status in (200, 202), "a run that has ended already is answered with its receipt"
    found: str = reply.json["result"]["chain_id"]
    return found


async def ended(bench: StatefulBench, workflow_id: str) -> None:
    await bench.bench.dispatcher.server.part("workflows").wait(workflow_id, 10.0)


async def check(bench: StatefulBench, target: str, **fields: Any) -> Any:
    return await bench.send("CHECK", "/", {"target": target}, **fields)


async def test_respond_async_answers_at_once_and_says_where_to_look() -> None:
    async with bakery() as (oven, bench):
        reply = await bench.send("CHAIN", "/", {"steps": [BAKE]}, prefer="respond-async")
        begun = reply.json["result"]
        where = {"method": "CHECK", "path": "/", "parameters": {"target": begun["chain_id"]}}
        assert (reply.status, begun["status"], begun["look"]) == (202, "running", where)
        assert reply.header("Preference-Applied") == "respond-async"
        running = (await check(bench, begun["chain_id"])).json["result"]
        assert running["status"] == "running"
        assert "output" not in running
        oven.opened.set()
        await ended(bench, begun["chain_id"])
        report = (await check(bench, begun["chain_id"])).json["result"]
        assert (report["status"], report["output"]) == ("completed", {"loaf": 1})
        assert (report["steps"][0]["output"], report["components"][0]["status"]) == ({"loaf": 1}, "done")


async def test_respond_async_with_a_key_names_the_same_run_again() -> None:
    async with bakery() as (_, bench):
        first, second = [await begin(bench, idempotency_key="k-1") for _ in range(2)]
        assert first == second


async def test_check_returns_the_error_of_the_whole_and_of_the_step() -> None:
    async with bakery() as (oven, bench):
        oven.fails = True
        oven.opened.set()
        workflow_id = await begin(bench)
        await ended(bench, workflow_id)
        report = (await check(bench, workflow_id)).json["result"]
        assert report["status"] == "failed"
        assert report["error"]["code"] == report["steps"][0]["error"]["code"] == "server-error"


async def test_the_result_is_kept_for_thirty_days() -> None:
    async with bakery() as (oven, bench):
        oven.opened.set()
        workflow_id = await begin(bench)
        await ended(bench, workflow_id)
        record = (await bench.bench.dispatcher.server.part("workflows").find(workflow_id)).record
        assert record.expires - record.updated == pytest.approx(30 * 86400)


async def test_task_id_names_the_run_for_its_owner_only() -> None:
    async with bakery() as (_, bench):
        workflow_id = await begin(bench, task_id="bread-7")
        report = (await check(bench, "bread-7")).json["result"]
        assert (report["target"], report["task_id"]) == (workflow_id, "bread-7")
        assert (await check(bench, "bread-7", agent=OTHER)).status == 404
        assert (await bench.send("PAUSE", "/", {"workflow_id": "bread-7"}, agent=OTHER)).status == 404
        paused = await bench.send("PAUSE", "/", {"workflow_id": "bread-7"})
        assert paused.json["result"]["workflow_id"] == workflow_id
        assert (await bench.send("RESUME", "/", {"workflow_id": "bread-7"}, agent=OTHER)).status in (404, 422)
        assert (await bench.send("RESUME", "/", {"workflow_id": "bread-7"})).json["result"]["status"] == "running"
        assert (await bench.send("CANCEL", "/", {"target_id": "bread-7"}, agent=OTHER)).status == 404
        cancelled = await bench.send("CANCEL", "/", {"target_id": "bread-7"})
        assert (cancelled.status, cancelled.json["result"]["target_id"]) == (202, workflow_id)


async def test_task_id_of_several_runs_is_refused_with_their_ids() -> None:
    async with bakery() as (_, bench):
        both = [await begin(bench, task_id="bread-7") for _ in range(2)]
        asked = {"CHECK": "target", "PAUSE": "workflow_id", "RESUME": "workflow_id", "CANCEL": "target_id"}
        for method, member in asked.items():
            reply = await bench.send(method, "/", {member: "bread-7"})
            assert (reply.status, reply.error["code"]) == (409, "workflow-ambiguous"), method
            assert sorted(reply.error["workflow_ids"]) == sorted(both)
        assert (await check(bench, both[1])).status == 200


async def test_a_failed_run_is_repeated_by_its_task_id() -> None:
    async with bakery() as (oven, bench):
        oven.fails = True
        oven.opened.set()
        await ended(bench, await begin(bench, task_id="bread-7"))
        oven.fails = False
        assert (await bench.send("RETRY", "/", {"original_task_id": "bread-7"})).status == 202


async def runs(bench: StatefulBench, agent: str | None = None, **fields: Any) -> Any:
    more = {} if agent is None else {"agent": agent}
    return (await bench.send("QUERY", "/workflows", fields, **more)).json["result"]


async def test_query_workflows_lists_the_callers_own_by_state_method_and_task() -> None:
    async with bakery() as (oven, bench):
        first = await begin(bench, task_id="bread-7")
        batch = await bench.send("BATCH", "/", {"calls": [{"method": "BOOK", "path": "/oven"}]}, prefer="respond-async")
        second = batch.json["result"]["batch_id"]
        assert [one["workflow_id"] for one in (await runs(bench))["workflows"]] in ([first, second], [second, first])
        assert (await runs(bench, OTHER))["workflows"] == []
        assert [one["workflow_id"] for one in (await runs(bench, method="BATCH"))["workflows"]] == [second]
        assert [one["workflow_id"] for one in (await runs(bench, task_id="bread-7"))["workflows"]] == [first]
        assert (await runs(bench, state="completed"))["workflows"] == []
        assert (await runs(bench, since="2100-01-01T00:00:00Z"))["workflows"] == []
        assert (await runs(bench, until="2001-01-01T00:00:00Z"))["workflows"] == []
        oven.opened.set()
        await ended(bench, second)
        assert (await runs(bench, state="completed", method="BATCH"))["workflows"][0]["status"] == "completed"


async def test_query_workflows_is_bounded_and_goes_on_with_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.workflows.methods._MOST_READ", 2)
    async with bakery() as (_, bench):
        begun = [await begin(bench) for _ in range(5)]
        seen: list[str] = []
        page = await runs(bench, limit=2)
        while True:
            assert len(page["workflows"]) <= 2
            seen += [one["workflow_id"] for one in page["workflows"]]
            if "cursor" not in page:
                break
            page = await runs(bench, limit=2, cursor=page["cursor"])
        assert sorted(seen) == sorted(begun)
        assert (await bench.send("QUERY", "/workflows", {"limit": 101})).status == 422
        assert (await bench.send("QUERY", "/workflows", {"cursor": "x"})).error["code"] == "invalid-cursor"
        assert (await runs(bench, OTHER, cursor=f"0.0 {begun[0]}"))["workflows"] == []


async def test_only_so_many_run_and_an_ended_one_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_OPEN", 2)
    async with bakery() as (oven, bench):
        begun = [await begin(bench) for _ in range(2)]
        full = await bench.send("CHAIN", "/", {"steps": [BAKE]}, prefer="respond-async")
        assert (full.status, full.error["code"]) == (429, "too-many-workflows")
        assert full.error["message"].endswith("CANCEL some, or repeat this when some have ended.")
        assert (await bench.send("CHAIN", "/", {"steps": [BAKE]}, prefer="respond-async", agent=OTHER)).status == 202
        oven.opened.set()
        await asyncio.gather(*(ended(bench, one) for one in begun))
        await begin(bench)


async def test_open_workflows_are_not_counted_for_every_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = 0
    really = CountOpen.steps

    def count(self: CountOpen) -> Any:
        nonlocal counts
        counts += 1
        return really(self)

    monkeypatch.setattr(CountOpen, "steps", count)
    async with bakery() as (_, bench):
        for _ in range(5):
            await begin(bench)
    assert counts == 1
