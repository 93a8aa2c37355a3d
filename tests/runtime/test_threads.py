"""Functions in threads."""

from __future__ import annotations

import threading

import pytest

from bespeak.runtime.concurrency import run_in_thread, running_threads

pytestmark = pytest.mark.anyio


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
