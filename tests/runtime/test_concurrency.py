"""A coroutine runs at once, and only its real waits are awaited."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar, copy_context

import pytest

from bespeak.runtime.concurrency import (
    FairSemaphore,
    Finished,
    Pace,
    Waiting,
    begin,
    call_eagerly,
    resume,
    run_in_thread,
    running_threads,
)

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
    assert isinstance(waiting, Waiting)
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


async def test_a_function_runs_in_another_thread_and_its_result_is_returned() -> None:
    assert await run_in_thread(lambda x: (x, threading.current_thread().name.split("_")[0]), 7) == (
        7,
        "bespeak-handler",
    )


async def test_stop_iteration_is_an_error_and_does_not_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(lambda: next(iter([])))


async def test_running_calls_are_counted() -> None:
    inside = await run_in_thread(running_threads)
    assert inside >= 1
    assert running_threads() == 0
