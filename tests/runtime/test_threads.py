"""Functions in threads."""

from __future__ import annotations

import threading

import pytest

from bespeak.runtime.threads import run_in_thread, running_threads

pytestmark = pytest.mark.anyio


async def test_a_function_runs_in_another_thread_and_its_result_comes_back() -> None:
    assert await run_in_thread(lambda x: (x, threading.current_thread().name.split("_")[0]), 7) == (
        7,
        "bespeak-handler",
    )


async def test_what_no_future_can_hold_is_an_error_and_not_a_wait_for_ever() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(lambda: next(iter([])))


async def test_calls_that_have_not_come_back_are_counted() -> None:
    inside = await run_in_thread(running_threads)
    assert inside >= 1
    assert running_threads() == 0
