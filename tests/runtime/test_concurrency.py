"""A coroutine runs at once and only its real waits are awaited; due work runs on time, and again if it fails."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.runtime import background
from bespeak.runtime.background import DueLoop, Follower
from bespeak.runtime.concurrency import (
    FairSemaphore,
    Finished,
    Pace,
    WaitingCoroutine,
    begin,
    call_eagerly,
    resume,
    run_in_thread,
    running_threads,
)
from bespeak.runtime.server import PausedTasks
from bespeak.state.store.commands.cases import ESCALATION, TASK_TOPIC, DecideCase, OpenCase, PauseTask
from bespeak.state.store.commands.endpoints import TOPIC, PutEndpoint, ReadRevision
from bespeak.state.store.commands.records import ChangeRecord, PutRecord, Record
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Store

pytestmark = pytest.mark.anyio


async def test_a_coroutine_that_does_not_wait_is_finished_at_once() -> None:
    async def at_once() -> int:
        return 7

    assert begin(at_once(), copy_context()) == Finished(7)


async def test_a_waiting_coroutine_has_run_up_to_its_wait_and_continues_when_awaited() -> None:
    seen: list[str] = []

    async def twice() -> int:
        for _ in range(2):
            seen.append("before")
            await asyncio.sleep(0)
            seen.append("after")
        return 7

    rest = begin(twice(), copy_context())
    assert seen == ["before"]
    assert not isinstance(rest, Finished)
    assert await rest == 7
    assert seen == ["before", "after"] * 2


@pytest.mark.parametrize("waits", [False, True])
async def test_outside_a_task_nothing_runs_before_it_is_awaited_in_one(waits: bool) -> None:
    async def careful() -> int:
        async with asyncio.timeout(10):
            if waits:
                await asyncio.sleep(0)
            return 7

    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    found: list[object] = []

    def in_callback() -> None:
        found.append(begin(careful(), copy_context()))
        begun.set()

    loop.call_soon(in_callback)
    await begun.wait()
    [rest] = found
    assert asyncio.iscoroutine(rest)
    assert await loop.create_task(rest) == 7


async def test_an_error_passes_through_before_and_after_the_wait() -> None:
    async def wrong(wait: bool) -> int:
        if wait:
            await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        begin(wrong(wait=False), copy_context())
    rest = begin(wrong(wait=True), copy_context())
    assert not isinstance(rest, Finished)
    with pytest.raises(ValueError, match="no"):
        await rest


async def test_cancelling_reaches_the_coroutine() -> None:
    cleaned: list[str] = []
    started = asyncio.Event()

    async def patient() -> int:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")
        return 7

    async def outer() -> int:
        rest = begin(patient(), copy_context())
        assert not isinstance(rest, Finished)
        return await rest

    task = asyncio.create_task(outer())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["up"]


async def test_a_timeout_inside_the_coroutine_works_as_usual() -> None:
    async def limited() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "not"

    rest = begin(limited(), copy_context())
    assert not isinstance(rest, Finished)
    assert await rest == "timed out"


async def test_context_variables_stay_inside_before_and_after_a_wait() -> None:
    name: ContextVar[str] = ContextVar("name", default="nobody")

    async def remember() -> list[str]:
        seen = [name.get()]
        name.set("alice")
        await asyncio.sleep(0)
        seen.append(name.get())
        return seen

    for _ in range(2):
        rest = begin(remember(), copy_context())
        assert not isinstance(rest, Finished)
        assert await rest == ["nobody", "alice"]
    assert name.get() == "nobody"


async def test_a_call_ends_at_once_or_with_what_its_coroutine_waits_for() -> None:
    async def add(first: int, second: int) -> int:
        return first + second

    async def wait(_: int) -> int:
        await asyncio.sleep(0)
        return 7

    assert (call_eagerly(max, 1, 2), call_eagerly(add, 1, 2)) == (2, 3)
    waiting = call_eagerly(wait, 1)
    assert isinstance(waiting, WaitingCoroutine)
    assert await resume(waiting.coroutine, waiting.awaited) == 7


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_owners_take_turns_in_rotation() -> None:
    turns, served = FairSemaphore(1, most=100, most_of_one=10), []

    async def work(owner: str) -> None:
        async with turns.take(owner):
            await asyncio.sleep(0)
            served.append(owner)

    await asyncio.gather(*map(work, "aaaabc"))
    assert "".join(served) == "abcaaa"


async def test_those_who_wait_are_bounded_for_one_and_for_all() -> None:
    turns = FairSemaphore(1, most=3, most_of_one=2)

    async def hold(owner: str) -> None:
        async with turns.take(owner):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold(owner)) for owner in "xaa"]
    await settle()
    assert (turns.has_room("a"), turns.has_room("b")) == (False, True)
    tasks.append(asyncio.create_task(hold("b")))
    await settle()
    assert (turns.has_room("b"), turns.has_room("c")) == (False, False)
    for task in reversed(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert turns.has_room("a")
    async with asyncio.timeout(1), turns.take("a"):
        pass


async def test_a_turn_that_is_not_wanted_any_more_goes_to_the_next() -> None:
    turns = FairSemaphore(1, most=10, most_of_one=10)
    began = asyncio.Event()

    async def wait(owner: str) -> None:
        async with turns.take(owner):
            began.set()

    async with turns.take("x"):
        first, second = (asyncio.create_task(wait(owner)) for owner in "ab")
        await settle()
    first.cancel()  # after it was given the turn, and before it runs
    await asyncio.wait_for(began.wait(), 1)
    await asyncio.gather(first, second, return_exceptions=True)
    async with asyncio.timeout(1), turns.take("x"):
        pass


async def test_owners_start_in_rotation_once_per_turn_of_the_loop() -> None:
    pace, started = Pace(), []
    for owner in "aaaabc":
        pace.start(owner, lambda owner=owner: started.append(owner))
    for count in range(1, 7):
        await asyncio.sleep(0)
        assert len(started) == count
    assert "".join(started) == "abcaaa"


async def test_work_that_fails_or_was_cancelled_stops_no_other() -> None:
    pace, started = Pace(), []
    waiting = [asyncio.create_task(pace.wait("a")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()

    def fail() -> None:
        started.append("failed")
        raise ZeroDivisionError

    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    pace.start("b", fail)
    pace.start("c", lambda: started.append("started"))
    await asyncio.wait(waiting)
    await settle()
    assert started == ["failed", "started"]
    assert [task.cancelled() for task in waiting] == [False, True, False]
    assert isinstance(reported[0]["exception"], ZeroDivisionError)


async def test_owner_that_comes_later_is_served_before_the_next_work_of_the_busy_one() -> None:
    pace, started = Pace(), []
    for owner in "aaa":
        pace.start(owner, lambda owner=owner: started.append(owner))
    await asyncio.sleep(0)
    pace.start("b", lambda: started.append("b"))
    await settle()
    assert "".join(started) == "abaa"


async def test_a_function_in_another_thread_returns_its_result_or_error() -> None:
    assert await run_in_thread(lambda x: (x, threading.current_thread().name.split("_")[0]), 7) == (
        7,
        "bespeak-handler",
    )
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(lambda: next(iter([])))


async def test_running_calls_are_counted() -> None:
    assert (await run_in_thread(running_threads)) >= 1
    assert running_threads() == 0


async def test_records_are_handed_over_when_they_are_due_even_if_added_later() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def carry(records: Sequence[Record]) -> None:
        for record in records:
            await store.do(ChangeRecord(record.record_id, (record.kind,), ("open",), "done", fence=record.fence))
            seen.put_nowait(record.record_id)

    loop = DueLoop(store, {"alert": carry})
    loop.start()
    try:
        await store.do(PutRecord("soon", "alert", "ann", "open", "{}", delay=0.05))
        await store.do(PutRecord("now", "alert", "ann", "open", "{}", delay=0.0))
        await store.do(PutRecord("foreign", "grant", "ann", "open", "{}", delay=0.0))
        async with asyncio.timeout(10):
            assert [await seen.get(), await seen.get()] == ["now", "soon"]
    finally:
        await loop.stop()
        await store.close()


async def test_a_kind_that_fails_does_not_hold_up_others_and_is_due_again() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    done: list[str] = []

    async def fail(_: Sequence[Record]) -> None:
        raise ValueError("no")

    async def carry(records: Sequence[Record]) -> None:
        done.extend(record.record_id for record in records)

    try:
        loop = DueLoop(store, {"bad": fail, "good": carry}, lease=-1.0)
        await store.do(PutRecord("b", "bad", "ann", "open", "{}", delay=-2.0))
        await store.do(PutRecord("g", "good", "ann", "open", "{}", delay=-1.0))
        assert await loop.turn() == 2
        assert await loop.turn() == 2
        assert done == ["g", "g"]
    finally:
        await store.close()


async def test_a_kind_that_takes_long_does_not_hold_up_others() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    begun, carried = asyncio.Event(), asyncio.Event()

    async def wait(_: Sequence[Record]) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def carry(_: Sequence[Record]) -> None:
        carried.set()

    loop = DueLoop(store, {"slow": wait, "quick": carry})
    loop.start()
    try:
        async with asyncio.timeout(10):
            await store.do(PutRecord("s", "slow", "ann", "open", "{}", delay=0.0))
            await begun.wait()
            await store.do(PutRecord("q", "quick", "ann", "open", "{}", delay=0.0))
            await carried.wait()
    finally:
        await loop.stop()
        await store.close()


async def test_more_than_one_group_that_is_due_at_once_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.background._AT_ONCE", 4)
    store = open_store("memory", role="sole")
    await store.start()
    groups: list[int] = []
    done = asyncio.Event()

    async def carry(records: Sequence[Record]) -> None:
        groups.append(len(records))
        if sum(groups) == 10:
            done.set()

    for number in range(10):
        await store.do(PutRecord(f"r{number}", "alert", "ann", "open", "{}", delay=0.0))
    loop = DueLoop(store, {"alert": carry})
    loop.start()
    try:
        async with asyncio.timeout(10):
            await done.wait()
        assert groups == [4, 4, 2]
    finally:
        await loop.stop()
        await store.close()


class Held:
    """A revision, read again after changes; the first readings may fail."""

    def __init__(self, failures: int = 0) -> None:
        self.revision = -1
        self.changed = asyncio.Event()
        self._failures = failures

    async def take_in(self, store: Store) -> None:
        self.revision = await store.read(ReadRevision())
        if self.revision and self._failures:
            self._failures -= 1
            raise StoreUnavailableError("away")
        if self.revision:
            self.changed.set()


async def test_the_store_is_read_at_once_and_after_every_change(store: Store) -> None:
    held = Held()
    following = Follower(TOPIC, held.take_in)
    await following.refresh()
    assert held.revision == -1
    await following.follow(store)
    assert held.revision == 0
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert held.revision == 1
    await following.close()


async def test_a_store_that_could_not_be_read_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    caplog.set_level(logging.INFO)  # the store itself reports that it is away
    held = Held(failures=2)
    following = Follower(TOPIC, held.take_in)
    await following.follow(store)
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert caplog.text.count("could not read the endpoints in the store") == 2
    await following.close()


async def test_copy_that_cannot_be_read_is_stale_until_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    store.sole = False
    away = asyncio.Event()
    flips: asyncio.Queue[bool] = asyncio.Queue()

    async def take_in(_: Store) -> None:
        if away.is_set():
            raise StoreUnavailableError("away")

    following = Follower(TOPIC, take_in, stale_after=0.05, flip=flips.put_nowait)
    await following.follow(store)
    away.set()  # and no change is announced: it is read all the same
    assert await asyncio.wait_for(flips.get(), 10) is True
    away.clear()
    assert await asyncio.wait_for(flips.get(), 10) is False
    await following.close()
    assert flips.empty()


async def test_copy_of_a_store_without_other_processes_is_never_stale(store: Store) -> None:
    flips: list[bool] = []
    following = Follower(TOPIC, Held().take_in, stale_after=1e-9, flip=flips.append)
    await following.follow(store)
    for _ in range(10):
        await asyncio.sleep(0)
    await following.close()
    assert flips == []


A = "a" * 64


async def pause(store: Store, task_id: str) -> None:
    case_id = f"esc-{task_id}"
    await store.do(OpenCase(case_id, ESCALATION, A, "desk", task_id, "{}", pause=PauseTask(case_id, task_id, (A,))))


async def test_tasks_are_loaded_at_start_and_after_a_change(store: Store) -> None:
    tasks = PausedTasks()
    assert (tasks.watched, tasks.get(A, "t")) == (False, None)
    await pause(store, "t")
    await tasks.follow(store)
    assert tasks.watched
    assert tasks.get(A, "t") is not None
    await store.do(DecideCase("esc-t", "accepted", "desk", "att-1"))
    await tasks.refresh()
    assert (tasks.watched, tasks.get(A, "t")) == (False, None)
    await tasks.close()


async def test_a_pause_by_another_process_is_noticed(store: Store) -> None:
    tasks = PausedTasks()
    await tasks.follow(store)
    noticed = asyncio.Event()
    store.watch(TASK_TOPIC, noticed.set)  # after the follower, which has started to read by then
    await pause(store, "t")
    await asyncio.wait_for(noticed.wait(), 10)
    await tasks.refresh()  # waits for the reading in progress
    assert tasks.get(A, "t") is not None
    await tasks.close()


async def test_more_tasks_than_fit_leave_the_answer_to_the_store(store: Store) -> None:
    tasks = PausedTasks(most=2)
    for task_id, complete in (("t", True), ("u", True), ("v", False)):
        await pause(store, task_id)
        await tasks.follow(store)
        assert (tasks.watched, tasks.complete) == (True, complete)
    await tasks.close()


async def test_store_that_cannot_be_read_leaves_answer_to_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = PausedTasks()
    await tasks.follow(store)

    async def fail(command: Command) -> Any:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", fail)
        await tasks.refresh()
    assert (tasks.watched, tasks.complete) == (True, False)
    await tasks.refresh()
    assert (tasks.watched, tasks.complete) == (False, True)
    await tasks.close()
