"""RETRY repeats a failed call of the caller by its Task-ID, and does not do twice what was done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.runtime.monitors.retries import MOST_BODY, call_id
from bespeak.state.store.commands.monitors import KEPT_CALL
from bespeak.state.store.commands.records import FindRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
METHODS = ("RETRY", "CHAIN")
ROOM = {"room": {"type": "string"}}


class Desk:
    """Books rooms, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.failing = 1
        self.booked: list[str] = []

    def book(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            self.failing -= 1
            raise ValueError("the desk is closed")
        self.booked.append(given["room"])
        return {"reservation": f"res-{given['room']}"}


@asynccontextmanager
async def desk(store: Store | None = None, **fields: Any) -> AsyncIterator[tuple[Desk, StatefulBench]]:
    made = Desk()
    book = make_endpoint("BOOK", "/rooms", made.book, impact="reversible", properties=ROOM, required=("room",))
    async with keeping(book, methods=METHODS, store=store, **fields) as bench:
        yield made, bench


async def book(bench: StatefulBench, task: str = "task-1", room: str = "12", **headers: str) -> int:
    status: int = (await bench.send("BOOK", "/rooms", {"room": room}, task_id=task, **headers)).status
    return status


async def retry(bench: StatefulBench, task: str = "task-1", **fields: Any) -> Any:
    return await bench.send("RETRY", "/", {"original_task_id": task, **fields})


@pytest.mark.requirement("METHODS-8.5-3")
async def test_a_failed_call_is_repeated_with_its_input() -> None:
    async with desk() as (made, bench):
        assert await book(bench) == 500
        reply = await retry(bench)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["attempt"], result["code"]) == (200, "completed", 2, 200)
        assert (result["output"], made.booked) == ({"reservation": "res-12"}, ["12"])


@pytest.mark.requirement("METHODS-8.5-2")
async def test_a_call_that_succeeded_is_not_repeated() -> None:
    async with desk() as (made, bench):
        made.failing = 0
        assert await book(bench) == 200
        result = (await retry(bench)).json["result"]
        assert (result["status"], result["output"], made.booked) == ("suppressed", {"reservation": "res-12"}, ["12"])
        assert (await retry(bench, max_attempts=1)).json["result"]["status"] == "suppressed"


async def test_a_failed_call_is_not_displaced_by_another_one_of_its_task() -> None:
    async with desk() as (made, bench):
        await book(bench, room="12")
        assert await book(bench, room="14") == 200
        await retry(bench)
        assert made.booked == ["14", "12"]


@pytest.mark.requirement("METHODS-8.5-2")
async def test_a_call_under_an_idempotency_key_returns_its_recorded_answer() -> None:
    async with desk() as (made, bench):
        assert await book(bench, idempotency_key="k1") == 500
        assert await book(bench, "task-2", idempotency_key="k1") == 200
        result = (await retry(bench)).json["result"]
        assert (result["status"], result["code"], made.booked) == ("suppressed", 200, ["12"])


@pytest.mark.requirement("METHODS-8.5-4")
async def test_attempts_are_counted_in_the_store() -> None:
    async with desk() as (made, bench):
        made.failing = 9
        await book(bench)
        assert (await retry(bench, max_attempts=3)).json["result"]["status"] == "failed"
        assert (await retry(bench, max_attempts=3)).json["result"]["attempt"] == 3
        refused = await retry(bench, max_attempts=3)
        assert (refused.status, refused.error["code"], made.failing) == (409, "attempts-exhausted", 6)


async def test_a_delayed_retry_happens_later_with_backoff() -> None:
    async with desk() as (made, bench):
        made.failing = 2
        await book(bench)
        reply = await retry(bench, delay=0.01, max_attempts=5)
        assert (reply.status, reply.json["result"]["status"]) == (202, "scheduled")
        async with asyncio.timeout(20):
            while not made.booked:
                await asyncio.sleep(0.01)
            while (reply := await retry(bench)).status != 200:
                await asyncio.sleep(0.01)
        result = reply.json["result"]
        assert (result["status"], result["attempt"], made.booked) == ("suppressed", 3, ["12"])


async def test_a_scheduled_retry_cannot_be_retried_meanwhile() -> None:
    async with desk() as (_, bench):
        await book(bench)
        await retry(bench, delay=3600)
        refused = await retry(bench)
        assert (refused.status, refused.error["code"]) == (409, "task-running")


@pytest.mark.requirement("METHODS-8.5-4")
async def test_tasks_of_others_and_unknown_ones_do_not_exist() -> None:
    async with desk() as (made, bench):
        await book(bench)
        other = await bench.send("RETRY", "/", {"original_task_id": "task-1"}, agent=FRIEND)
        unknown = await retry(bench, "task-2")
        assert (other.status, other.error["code"], unknown.status) == (404, "task-not-found", 404)
        assert made.booked == []


async def test_gates_judge_the_repeated_call_again() -> None:
    made = Desk()
    endpoint = make_endpoint("BOOK", "/rooms", made.book, impact="reversible", properties=ROOM, scopes=("rooms:book",))
    async with keeping(endpoint, methods=METHODS) as bench:
        assert await book(bench, authority_scope="rooms:book") == 500
        refused = (await retry(bench)).json["result"]
        assert (refused["status"], refused["code"], made.booked) == ("failed", 455, [])
        again = await bench.send("RETRY", "/", {"original_task_id": "task-1"}, authority_scope="rooms:book")
        assert again.json["result"]["status"] == "completed"


async def test_no_credentials_and_no_large_request_are_kept() -> None:
    async with desk() as (_, bench):
        await book(bench, authorization="Bearer secret-token")
        record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        assert "secret-token" not in record.data
        await book(bench, "task-9", "x" * MOST_BODY)
        assert (await retry(bench, "task-9")).status == 404


async def test_a_failed_workflow_is_repeated_from_the_failed_step() -> None:
    async with desk() as (made, bench):
        step = {"method": "BOOK", "path": "/rooms", "parameters": {"room": "7"}}
        chain = (await bench.send("CHAIN", "/", {"steps": [step]})).json["result"]
        assert chain["status"] == "failed"
        other = await bench.send("RETRY", "/", {"original_task_id": chain["chain_id"]}, agent=FRIEND)
        assert other.status == 404
        reply = await retry(bench, chain["chain_id"])
        assert (reply.status, reply.json["result"]["status"]) == (202, "scheduled")
        found = await bench.bench.server.workflows.wait(chain["chain_id"], 20.0)
        assert (found.record.state, made.booked) == ("completed", ["7"])
        assert (await retry(bench, chain["chain_id"])).json["result"]["status"] == "suppressed"


@pytest.mark.parametrize(
    "body",
    [{}, {"original_task_id": 7}, {"original_task_id": "t", "delay": -1}, {"original_task_id": "t", "max_attempts": 0}],
)
async def test_wrong_parameters_are_refused(body: dict[str, Any]) -> None:
    async with desk() as (_, bench):
        assert (await bench.send("RETRY", "/", body)).status == 422


TASK_IDS = [
    "t",
    f"task-{'a' * 32}",
    f"chain-{'0' * 32}",
    "x" * 5000,
    "\u65e5\u672c" * 900,
    "a/b?c=d&e#f",
    "say \"hi\" \\ 'x'",
    "a\tb  c",
    "%00%0a",
    "{id}",
    "../../etc",
]


async def test_task_ids_of_any_form_can_be_repeated_paused_and_found() -> None:
    endpoint = make_endpoint("BOOK", "/rooms", _refuse, impact="reversible")
    async with keeping(endpoint, methods=("RETRY",)) as bench:
        for task_id in TASK_IDS:
            assert (await bench.send("BOOK", "/rooms", {}, task_id=task_id)).status == 500
            again = await bench.send("RETRY", "/", {"original_task_id": task_id})
            assert (task_id, again.status) == (task_id, 200)
            assert (again.json["result"]["original_task_id"], again.json["result"]["attempt"]) == (task_id, 2)
            raised = {"task_id": task_id, "reason": "scope_limit", "context": {}}
            assert (await bench.send("ESCALATE", "/", raised)).status == 202
            assert (await bench.send("BOOK", "/rooms", {}, task_id=task_id)).error["code"] == "task-paused"
            assert (await bench.send("BOOK", "/rooms", {}, task_id=f"{task_id}.")).status == 500


def _refuse(_: dict[str, Any]) -> dict[str, Any]:
    raise ValueError
