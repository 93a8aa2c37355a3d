"""Repetitions after a crash, and the processes that are known to each other on a store."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.messages.store import PutOutbox
from bespeak.extensions.monitors.health import Presence, examine, judge
from bespeak.extensions.monitors.retries import MOST_ATTEMPTS, call_id, restored
from bespeak.extensions.monitors.store import FAILED, KEPT_CALL, REPEATING, SCHEDULED, SUCCEEDED
from bespeak.runtime.identity.authority import restore_call
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.commands.workers import CountWorkers, RenewWorker, WorkerCount
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


def fail(_: dict[str, Any]) -> dict[str, Any]:
    raise ValueError


BOOK = make_endpoint("BOOK", "/rooms", fail, impact="reversible")


async def failed(bench: StatefulBench, state: str) -> Record:
    """Fail once, and put the record of it into a state."""
    await bench.send("BOOK", "/rooms", {}, task_id="task-1")
    done = await bench.store.do(ChangeRecord(call_id(AGENT, "task-1"), (KEPT_CALL,), (FAILED,), state, delay=3600.0))
    record: Record = done[0]
    return record


async def state_of(bench: StatefulBench) -> str:
    record: Record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
    return record.state


async def until_failed(bench: StatefulBench) -> None:
    async with asyncio.timeout(10):
        while await state_of(bench) != FAILED:
            await asyncio.sleep(0.01)


async def test_an_interrupted_repetition_counts_as_failed() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        record = await failed(bench, REPEATING)
        await bench.bench.server.part("retries").carry([record])
        await until_failed(bench)


async def test_an_interrupted_repetition_that_was_scheduled_is_repeated_after_a_restart(tmp_path: Path) -> None:
    place, attempts = str(tmp_path / "store.db"), list[str]()
    reached, ended = asyncio.Event(), asyncio.Event()

    async def book(_: dict[str, Any]) -> dict[str, Any]:
        attempts.append("attempt")
        if len(attempts) == 1:
            raise ValueError
        if len(attempts) == 2:
            reached.set()
            await asyncio.Event().wait()
        ended.set()
        return {}

    endpoint = make_endpoint("BOOK", "/rooms", book, impact="reversible")
    async with asyncio.timeout(10):
        async with keeping(endpoint, methods=("RETRY",), store=open_store(place, role="sole")) as bench:
            await bench.send("BOOK", "/rooms", {}, task_id="task-1")
            later = await bench.send("RETRY", "/", {"original_task_id": "task-1", "delay": 0.01})
            assert later.status == 202
            await reached.wait()
        async with keeping(endpoint, methods=("RETRY",), store=open_store(place, role="sole")) as bench:
            await ended.wait()
            while await state_of(bench) != SUCCEEDED:
                await asyncio.sleep(0.01)
    assert len(attempts) == 3


async def test_the_next_attempt_is_scheduled_with_the_answer_of_the_last() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        await bench.send("BOOK", "/rooms", {}, task_id="task-1")
        retries = bench.bench.server.part("retries")
        found = await retries.find(AGENT, "task-1")
        kept = replace(found[1], delay=3600.0, max_attempts=5)
        caller = restore_call(kept.authority, bench.bench.server, "RETRY")
        await retries.repeat(found[0], kept, restored(kept, caller, bench.connection))
        record, kept = await retries.find(AGENT, "task-1")
        assert (record.state, kept.attempts, record.due is not None) == (SCHEDULED, 2, True)


async def test_an_interrupted_repetition_is_not_repeated_without_end() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        record = await failed(bench, REPEATING)
        _, kept = await bench.bench.server.part("retries").find(AGENT, "task-1")
        kept = replace(kept, delay=1.0, attempts=MOST_ATTEMPTS)
        await bench.bench.server.part("retries").carry([replace(record, data=msgspec.json.encode(kept).decode())])
        await until_failed(bench)


async def test_nothing_is_repeated_where_retry_is_not_enabled() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        record = await failed(bench, SCHEDULED)
        bench.bench.server.part("retries")._enabled = False
        await bench.bench.server.part("retries").carry([record])
        await until_failed(bench)


async def test_nothing_is_kept_without_a_task_an_agent_or_retry() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        await bench.send("BOOK", "/rooms", {})
        await bench.send("BOOK", "/rooms", {}, agent=None, task_id="task-1")
        assert await bench.store.read(FindRecord((KEPT_CALL,), call_id("", "task-1"))) is None
    async with keeping(BOOK, methods=("CHAIN",)) as bench:
        await bench.send("BOOK", "/rooms", {}, task_id="task-1")
        assert await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1"))) is None


async def test_a_repetition_that_takes_long_holds_up_no_other() -> None:
    release, begun = asyncio.Event(), asyncio.Event()
    tries: list[str] = []

    async def book(given: dict[str, Any]) -> dict[str, Any]:
        tries.append(given["room"])
        if tries.count(given["room"]) == 1:
            raise ValueError
        if given["room"] == "slow":
            begun.set()
            await release.wait()
        return {}

    endpoint = make_endpoint("BOOK", "/rooms", book, impact="reversible", properties={"room": {"type": "string"}})
    async with keeping(endpoint, methods=("RETRY",)) as bench:
        for room, agent in (("slow", AGENT), ("fast", "b" * 64)):
            await bench.send("BOOK", "/rooms", {"room": room}, task_id="task-1", agent=agent)
            await bench.send("RETRY", "/", {"original_task_id": "task-1", "delay": 0.01}, agent=agent)
            if room == "slow":
                await asyncio.wait_for(begun.wait(), 10)
        async with asyncio.timeout(10):
            while tries.count("fast") < 2:
                await asyncio.sleep(0.01)
        release.set()


async def test_calls_of_one_agent_that_are_due_together_wait_for_a_place_and_not_for_a_lease() -> None:
    tries: Counter[str] = Counter()

    async def book(given: dict[str, Any]) -> dict[str, Any]:
        tries[given["room"]] += 1
        if tries[given["room"]] == 1:
            raise ValueError
        return {}

    endpoint = make_endpoint("BOOK", "/rooms", book, impact="reversible", properties={"room": {"type": "string"}})
    tasks = [f"task-{number}" for number in range(40)]
    async with keeping(endpoint, methods=("RETRY",)) as bench:
        for task_id in tasks:
            await bench.send("BOOK", "/rooms", {"room": task_id}, task_id=task_id)
            await bench.send("RETRY", "/", {"original_task_id": task_id, "delay": 3600})
        ids = [call_id(AGENT, task_id) for task_id in tasks]
        due = [await bench.store.read(FindRecord((KEPT_CALL,), record_id)) for record_id in ids]
        await bench.bench.server.part("retries").carry(due)
        async with asyncio.timeout(10):
            while any(tries[task_id] < 2 for task_id in tasks):
                await asyncio.sleep(0.01)


async def test_a_later_repetition_has_the_authority_of_whoever_asked_for_it() -> None:
    pay = make_endpoint("PAY", "/bills", fail, impact="reversible", scopes=("bills:pay",))
    async with keeping(pay, methods=("RETRY",)) as bench:
        await bench.send("PAY", "/bills", {}, task_id="task-1", authority_scope="bills:pay")
        await bench.send("RETRY", "/", {"original_task_id": "task-1", "delay": 3600})
        record: Record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        await bench.bench.server.part("retries").carry([record])
        await until_failed(bench)
        told = await bench.send("RETRY", "/", {"original_task_id": "task-1", "max_attempts": 2})
        assert (told.status, told.error["code"]) == (409, "attempts-exhausted")
        found: Record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        assert found.content()["status"] == 455


def shared(folder: Path) -> Store:
    store = open_store(str(folder / "store.db"), role="shared")
    store.sole = False
    return store


async def workers(bench: StatefulBench) -> Any:
    reply = await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})
    [found] = [one for one in reply.json["result"]["components"] if one["name"] == "workers"]
    return found["status"], found["message"]


async def test_a_check_counts_the_processes_and_finds_silent_ones(tmp_path: Path) -> None:
    async with keeping(methods=("CHECK",), store=shared(tmp_path)) as bench:
        assert await workers(bench) == ("ok", "1 process works on the store.")
        async with keeping(methods=("CHECK",), store=shared(tmp_path)):
            assert await workers(bench) == ("ok", "2 processes work on the store.")
        assert await workers(bench) == ("ok", "1 process works on the store.")


async def test_a_silent_process_is_failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=("CHECK",), store=shared(tmp_path)) as bench:
        await bench.store.do(RenewWorker("worker-9", "test.example", 60.0))
        monkeypatch.setattr("bespeak.extensions.monitors.health.SILENT", -1.0)
        assert (await workers(bench))[0] == "failing"


async def test_the_record_is_renewed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.monitors.health.EVERY", 0.0)
    store = shared(tmp_path)
    await store.start()
    presence = Presence(store, "test.example")
    await presence.start()
    assert await store.read(CountWorkers("test.example", 60.0)) == WorkerCount(1, 0)
    await presence.stop()
    assert await store.read(CountWorkers("test.example", 60.0)) == WorkerCount(0, 0)
    await store.close()


async def states(bench: StatefulBench) -> dict[str, tuple[str, str]]:
    found = await examine(bench.bench.server)
    return {one["name"]: (one["status"], one.get("message", "")) for one in found}


async def test_a_server_at_rest_is_healthy() -> None:
    async with keeping(methods=("CHECK",)) as bench:
        found = await examine(bench.bench.server)
        assert judge(found) == "ok"
        names = {"server", "store", "workflows", "queue of deliveries", "queue of what is due", "queue of submissions"}
        assert names <= {one["name"] for one in found}


async def test_what_waits_is_told_and_what_is_late_is_failing() -> None:
    async with keeping() as bench:  # without methods nothing is delivered
        await bench.store.do(
            PutOutbox(TOPIC, "x", "{}", -90.0),
            PutRecord("item-1", "submission", "ann", "queued", "{}"),
            PutRecord("x-1", "x", "ann", "open", "{}", delay=-30.0),
        )
        found = await states(bench)
        assert found["queue of deliveries"][0] == "failing"
        assert found["queue of deliveries"][1].startswith("1 wait, the oldest is 9")
        assert (found["queue of what is due"][0], found["queue of submissions"]) == ("ok", ("ok", "1 wait."))


@pytest.mark.requirement("METHODS-8.9-4")
async def test_an_examination_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.monitors.health.WITHIN", 0.0)
    async with keeping(methods=("CHECK",)) as bench:
        reply = await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})
        assert (reply.status, reply.error["code"]) == (408, "timeout")
