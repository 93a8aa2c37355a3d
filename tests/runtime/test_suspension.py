"""A coroutine runs at once, and only its real waits are awaited."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from bespeak.runtime.concurrency import Finished, Waiting, begin, call_eagerly, resume

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
