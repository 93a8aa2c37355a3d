"""Repetitions that a crash has interrupted go on if they were promised, and those of agents that may not act end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.monitors.retries import MOST_ATTEMPTS, call_id, restored
from bespeak.extensions.workflows.spec import restore_call
from bespeak.state.store.commands.monitors import FAILED, KEPT_CALL, REPEATING, SCHEDULED, SUCCEEDED
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.opening import open_store

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


async def test_an_interrupted_repetition_counts_as_failed() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        record = await failed(bench, REPEATING)
        await bench.bench.server.part("retries").carry([record])
        assert await state_of(bench) == FAILED


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
        assert await state_of(bench) == FAILED


async def test_nothing_is_repeated_where_retry_is_not_enabled() -> None:
    async with keeping(BOOK, methods=("RETRY",)) as bench:
        record = await failed(bench, SCHEDULED)
        bench.bench.server.part("retries")._enabled = False
        await bench.bench.server.part("retries").carry([record])
        assert await state_of(bench) == FAILED


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


async def test_a_later_repetition_has_the_authority_of_whoever_asked_for_it() -> None:
    pay = make_endpoint("PAY", "/bills", fail, impact="reversible", scopes=("bills:pay",))
    async with keeping(pay, methods=("RETRY",)) as bench:
        await bench.send("PAY", "/bills", {}, task_id="task-1", authority_scope="bills:pay")
        await bench.send("RETRY", "/", {"original_task_id": "task-1", "delay": 3600})
        record: Record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        await bench.bench.server.part("retries").carry([record])
        async with asyncio.timeout(10):
            while await state_of(bench) != FAILED:
                await asyncio.sleep(0.01)
        told = await bench.send("RETRY", "/", {"original_task_id": "task-1", "max_attempts": 2})
        assert (told.status, told.error["code"]) == (409, "attempts-exhausted")
        found: Record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        assert found.content()["status"] == 455
