"""Steps in the name of parked tasks: a current task from the beginning, and every cancellation where it belongs."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from typing import Any

import anyio
import pytest

from bespeak.faces.connection import PARKED, TaskPool
from bespeak.runtime.concurrency import Finished, begin

pytestmark = pytest.mark.anyio
NAME: ContextVar[str] = ContextVar("NAME", default="nobody")


class Steps:
    """Runs coroutine functions as steps: at once up to the first wait, the rest in the task."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = TaskPool(self.loop)
        self.results: asyncio.Queue[object] = asyncio.Queue()

    async def park(self) -> None:
        """Have one task parked."""
        await self.outcome(self.run(asyncio.sleep, 0))

    def run(self, function: Any, *args: Any) -> None:
        """Run a step outside of any task, as the loop does."""

        def step() -> Coroutine[Any, Any, None] | None:
            begun = begin(self._report(function(*args)), copy_context())
            return None if isinstance(begun, Finished) else begun

        self.loop.call_soon(self.pool.run, step)

    async def _report(self, coroutine: Coroutine[Any, Any, object]) -> None:
        try:
            self.results.put_nowait(await coroutine)
        except BaseException as error:
            self.results.put_nowait(type(error))
            raise

    async def outcome(self, _: None = None) -> object:
        async with asyncio.timeout(10):
            return await self.results.get()


@pytest.fixture
async def steps() -> Any:
    steps = Steps()
    await steps.park()
    yield steps
    steps.pool.cancel()
    steps.pool.close()
    await asyncio.sleep(0)


async def test_a_step_runs_at_once_in_one_task_even_if_it_waits(steps: Steps) -> None:
    async def current() -> object:
        return asyncio.current_task()

    tasks = [await steps.outcome(steps.run(current)) for _ in range(3)]
    assert isinstance(tasks[0], asyncio.Task)
    assert tasks == [tasks[0]] * 3
    assert not steps.pool.waiting

    async def current() -> object:
        before = asyncio.current_task()
        await asyncio.sleep(0.01)
        return before is not None and before is asyncio.current_task()

    assert await steps.outcome(steps.run(current)) is True


async def test_steps_that_wait_at_the_same_time_have_tasks_of_their_own(steps: Steps) -> None:
    tasks = set()
    together = asyncio.Event()

    async def meet() -> None:
        tasks.add(asyncio.current_task())
        if len(tasks) == 10:
            together.set()
        await together.wait()

    for _ in range(10):
        steps.run(meet)
    for _ in range(10):
        assert await steps.outcome() is None
    assert len(tasks) == 10


async def test_no_more_tasks_are_parked_than_are_of_use(steps: Steps) -> None:
    for _ in range(2 * PARKED):
        steps.run(asyncio.sleep, 0.01)
    for _ in range(2 * PARKED):
        await steps.outcome()
    await asyncio.sleep(0.01)
    assert not steps.pool.waiting
    assert len([task for task in asyncio.all_tasks() if "TaskPool" in str(task.get_coro())]) <= PARKED


@pytest.mark.parametrize("seconds", [0, 0.01])
async def test_a_timeout_strikes_the_step_it_was_set_in(steps: Steps, seconds: float) -> None:
    async def hurried() -> str:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(60)
        except TimeoutError:
            await asyncio.sleep(0)  # it can still wait afterwards
            return "late"
        return "done"

    for _ in range(3):
        assert await steps.outcome(steps.run(hurried)) == "late"


async def test_task_groups_and_cancellations_work_where_a_step_waits(steps: Steps) -> None:
    async def grouped() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(0, number)) for number in range(3)]
        with anyio.move_on_after(0):
            await anyio.sleep(60)
        async with anyio.create_task_group() as scope:
            scope.start_soon(anyio.sleep, 0)
        return [task.result() for task in tasks]

    assert await steps.outcome(steps.run(grouped)) == [0, 1, 2]

    async def cancelled() -> None:
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    assert await steps.outcome(steps.run(cancelled)) is asyncio.CancelledError
    assert await steps.outcome(steps.run(asyncio.sleep, 0, "next")) == "next"


async def test_cancellations_after_a_step_have_no_effect_and_those_of_the_pool_strike_waiting_ones(
    steps: Steps,
) -> None:
    async def current() -> Any:
        return asyncio.current_task()

    task: Any = await steps.outcome(steps.run(current))
    task.cancel()
    assert await steps.outcome(steps.run(asyncio.sleep, 0.01, "next")) == "next"
    assert await steps.outcome(steps.run(asyncio.sleep, 0.01, "later")) == "later"
    steps.run(asyncio.sleep, 60)
    await asyncio.sleep(0.01)
    steps.pool.cancel()
    assert await steps.outcome() is asyncio.CancelledError


async def test_a_task_that_swallowed_a_cancellation_is_not_reused(steps: Steps) -> None:
    async def stubborn() -> Any:
        task = asyncio.current_task()
        task.cancel()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return task

    first: Any = await steps.outcome(steps.run(stubborn))

    async def cancelling() -> object:
        task = asyncio.current_task()
        assert task is not None
        return task is not first and task.cancelling() == 0

    assert await steps.outcome(steps.run(cancelling)) is True


async def test_steps_inside_tasks_get_their_own_and_context_variables_are_not_shared(steps: Steps) -> None:
    seen: list[object] = []

    def step() -> None:
        seen.append(asyncio.current_task())

    steps.pool.run(step)  # this test is a task
    assert seen == []
    await asyncio.sleep(0.01)
    assert seen[0] is not None
    assert seen[0] is not asyncio.current_task()

    async def introduce(name: str, seconds: float | None) -> str:
        before = NAME.get()
        NAME.set(name)
        if seconds is not None:
            await asyncio.sleep(seconds)
            assert NAME.get() == name
        return before

    for seconds in (None, 0, None, 0.01, None):
        assert await steps.outcome(steps.run(introduce, "somebody", seconds)) == "nobody"


async def test_a_task_ends_with_its_step_once_the_pool_drains() -> None:
    steps = Steps()
    await steps.park()
    gate = asyncio.Event()
    steps.run(gate.wait)
    while not steps.pool.waiting:
        await asyncio.sleep(0)
    steps.pool.drain()
    gate.set()
    async with asyncio.timeout(10):
        await asyncio.wait(steps.pool.waiting)
    assert not steps.pool.waiting


async def test_a_parked_task_keeps_nothing_of_its_steps() -> None:
    class Connection:
        def step(self) -> Coroutine[Any, Any, None] | None:
            return self.wait()

        async def wait(self) -> None:
            await asyncio.sleep(0)

    pool = TaskPool(asyncio.get_running_loop())
    for _ in range(2):  # in a new task, and in a parked one
        connection = Connection()
        gone = weakref.ref(connection)
        asyncio.get_running_loop().call_soon(pool.run, connection.step)
        del connection
        await asyncio.sleep(0.05)
        assert not pool.waiting
        assert gone() is None
    pool.close()
    await asyncio.sleep(0)
