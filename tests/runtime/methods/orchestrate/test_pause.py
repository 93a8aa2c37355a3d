"""PAUSE keeps the result of the running step and lets no other begin; RESUME goes on after it, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

pytestmark = pytest.mark.anyio

STEPS = [{"name": "wait", "method": "AWAIT", "path": "/porter"}, {"method": "BOOK", "path": "/rooms"}]


class Paused:
    """A chain that is paused during its first step."""

    def __init__(self, impact: str = "reversible") -> None:
        self.impact = impact
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.booked = 0

    async def wait(self, _: dict[str, Any]) -> dict[str, Any]:
        self.begun.set()
        await self.release.wait()
        return {"waited": True}

    def book(self, _: dict[str, Any]) -> dict[str, Any]:
        self.booked += 1
        return {}

    def endpoints(self) -> tuple[Any, ...]:
        return (
            make_endpoint("AWAIT", "/porter", self.wait, impact=self.impact),
            make_endpoint("BOOK", "/rooms", self.book, impact="reversible"),
        )

    async def pause(self, bench: StatefulBench, **fields: Any) -> dict[str, Any]:
        chain = asyncio.create_task(bench.send("CHAIN", "/", {"steps": STEPS}))
        await self.begun.wait()
        [workflow_id] = bench.bench.server.workflows._driving
        reply = await bench.send("PAUSE", "/", {"workflow_id": workflow_id, **fields})
        assert reply.status == 200, reply.json
        self.release.set()
        receipt = (await chain).json["result"]
        assert (receipt["status"], [one["status"] for one in receipt["steps"]]) == ("paused", ["done", "pending"])
        result: dict[str, Any] = reply.json["result"]
        return result


async def until(bench: StatefulBench, workflow_id: str, state: str) -> None:
    async with asyncio.timeout(10):
        while (await bench.bench.server.workflows.find(workflow_id)).record.state != state:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("METHODS-8.6-2", "METHODS-8.6-4", "METHODS-8.7-2", "METHODS-8.7-3")
async def test_the_running_step_is_kept_and_the_next_one_waits_for_resume() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench, reason="maintenance")
        assert (paused["status"], made.booked) == ("paused", 0)
        given = {"workflow_id": paused["workflow_id"], "resumption_nonce": paused["resumption_nonce"]}
        wrong = await bench.send("RESUME", "/", {**given, "resumption_nonce": "x"})
        assert (wrong.status, wrong.error["code"]) == (409, "resumption-nonce-wrong")
        other = await bench.send("RESUME", "/", given, agent="b" * 64)
        assert (other.status, other.error["code"]) == (404, "workflow-not-found")
        assert (await bench.send("RESUME", "/", given)).json["result"]["status"] == "running"
        await until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1
        again = await bench.send("RESUME", "/", given)
        assert (again.status, again.error["code"]) == (409, "workflow-not-paused")


async def test_nothing_begins_after_a_step_that_changes_nothing_either() -> None:
    made = Paused("informational")
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        assert made.booked == 0
        await bench.send("RESUME", "/", {"workflow_id": paused["workflow_id"]})
        await until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1


async def test_a_chain_whose_running_step_fails_stays_paused_until_it_is_resumed() -> None:
    made = Paused()

    async def fail(_: dict[str, Any]) -> dict[str, Any]:
        await made.wait(_)
        raise ValueError("the porter is ill")

    async with keeping(
        make_endpoint("AWAIT", "/porter", fail, impact="reversible"), methods=("CHAIN", "PAUSE")
    ) as bench:
        chain = asyncio.create_task(bench.send("CHAIN", "/", {"steps": STEPS[:1]}))
        await made.begun.wait()
        [workflow_id] = bench.bench.server.workflows._driving
        await bench.send("PAUSE", "/", {"workflow_id": workflow_id})
        made.release.set()
        assert (await chain).json["result"]["status"] == "paused"
        await bench.send("RESUME", "/", {"workflow_id": workflow_id})
        await until(bench, workflow_id, "failed")


async def test_a_long_step_does_not_end_the_pause_of_its_batch() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("BATCH", "PAUSE")) as bench:
        workflows = bench.bench.server.workflows
        workflows._lease = 0.03
        calls = [{"method": "AWAIT", "path": "/porter"}, {"method": "BOOK", "path": "/rooms"}]
        batch = asyncio.create_task(bench.send("BATCH", "/", {"calls": calls}))
        await made.begun.wait()
        [workflow_id] = workflows._driving
        await bench.send("PAUSE", "/", {"workflow_id": workflow_id})
        workflows._journals[workflow_id].learn("paused")  # as the end of another call of the batch has told
        version = (await workflows.find(workflow_id)).record.version
        async with asyncio.timeout(10):
            while (record := (await workflows.find(workflow_id)).record).version < version + 3:  # the lease is renewed
                await asyncio.sleep(0.01)
        assert (record.state, record.due) == ("paused", None)
        made.release.set()
        assert (await batch).json["result"]["status"] == "paused"


@pytest.mark.requirement("METHODS-8.6-3")
async def test_a_pause_ends_at_its_time() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench, resume_at="2099-01-01T00:00:00Z")
        assert paused["resume_at"] == "2099-01-01T00:00:00Z"
        workflows = bench.bench.server.workflows
        record = (await workflows.find(paused["workflow_id"])).record
        assert record.due == 4070908800
        await workflows.take_over([record])  # what the due loop does at that time
        await until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1


async def test_a_checkpoint_replaces_what_a_step_returned() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        given = {"workflow_id": paused["workflow_id"], "checkpoint": {"wait": {"waited": False}}}
        refused = await bench.send("RESUME", "/", {**given, "checkpoint": {"nap": 1}})
        assert (refused.status, refused.error["code"]) == (422, "invalid-checkpoint")
        await bench.send("RESUME", "/", given)
        await until(bench, paused["workflow_id"], "completed")
        found = await bench.bench.server.workflows.find(paused["workflow_id"])
        assert found.rows[0].output == '{"waited":false}'


@pytest.mark.requirement("METHODS-8.6-5")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"workflow_id": "chain-x"}, 404, "workflow-not-found"),
        ({"workflow_id": "chain-x", "resume_at": "soon"}, 422, "invalid-resume-at"),
        ({"workflow_id": "chain-x", "resume_at": "2001-01-01T00:00:00Z"}, 422, "invalid-resume-at"),
    ],
)
async def test_what_cannot_be_paused_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(methods=("CHAIN", "PAUSE")) as bench:
        reply = await bench.send("PAUSE", "/", fields)
        assert (reply.status, reply.error["code"]) == (status, code)


@pytest.mark.requirement("METHODS-8.6-5")
async def test_a_workflow_that_has_ended_or_is_paused_cannot_be_paused() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        again = await bench.send("PAUSE", "/", {"workflow_id": paused["workflow_id"]})
        assert (again.status, again.error["code"]) == (409, "already-paused")
        await bench.send("RESUME", "/", {"workflow_id": paused["workflow_id"]})
        await until(bench, paused["workflow_id"], "completed")
        ended = await bench.send("PAUSE", "/", {"workflow_id": paused["workflow_id"]})
        assert (ended.status, ended.error["code"]) == (409, "workflow-ended")
