from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from bespeak.runtime.data.sources import run_interruptible

pytestmark = pytest.mark.anyio


async def test_result_is_that_of_the_function() -> None:
    def add(one: int, other: int, cancellable: Any) -> int:
        with cancellable(lambda: None):
            return one + other

    assert await run_interruptible(add, 1, 2) == 3


async def test_cancelling_ends_the_block() -> None:
    loop, began, stopped = asyncio.get_running_loop(), asyncio.Event(), Event()

    def wait(cancellable: Any) -> None:
        with cancellable(stopped.set):
            loop.call_soon_threadsafe(began.set)
            assert stopped.wait(10)

    task = asyncio.create_task(run_interruptible(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_block_that_was_left_is_not_interrupted() -> None:
    loop, left, go_on, interrupted = asyncio.get_running_loop(), asyncio.Event(), Event(), Event()

    def run(cancellable: Any) -> None:
        with cancellable(interrupted.set):
            pass
        loop.call_soon_threadsafe(left.set)
        go_on.wait(10)

    task = asyncio.create_task(run_interruptible(run))
    await left.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert not interrupted.is_set()
