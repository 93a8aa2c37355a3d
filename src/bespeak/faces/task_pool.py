"""Tasks in whose name handlers run inside a protocol's callback.

`data_received` runs in no task, but `asyncio.timeout`, task groups and anyio need a current one, and a task for every
request costs more than most handlers. So some tasks are parked here. A step is run at once, in the name of a parked
task (`_enter_task`, described in "Extending asyncio" of Python's documentation). Only if the step has to wait is its
coroutine handed to that task, which was its current task from the beginning. A step that finishes at once leaves the
task parked for the next one.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Final

Rest = Coroutine[Any, Any, None]
Step = Callable[[], Rest | None]  # runs as far as it can at once, returns the coroutine of the rest, never raises
PARKED: Final = 64  # Number of parked tasks to keep. Tasks beyond it end after their step.


class TaskPool:
    """Runs steps, each in a task that no other unfinished step uses."""

    __slots__ = ("_context", "_draining", "_loop", "_parked", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._context = copy_context()
        self._parked: list[_Worker] = []
        self._draining = False
        self.waiting: set[asyncio.Task[None]] = set()  # tasks that run a step or wait for the rest of one

    def run(self, step: Step) -> None:
        """Run a step now; if no task is parked, or another one is running, run it soon in a new task."""
        parked = self._parked
        while parked and parked[-1].wake.done():
            parked.pop()  # a handler that has ended cancelled its task, which is about to end too
        if not parked:
            self._spawn(step)
            return
        worker = parked[-1]
        try:
            _enter_task(self._loop, worker.task)
        except RuntimeError:  # called inside another task
            self._spawn(step)
            return
        try:
            rest = step()
        finally:
            _leave_task(self._loop, worker.task)
        if rest is not None:
            parked.pop()
            self.waiting.add(worker.task)
            worker.take_over(rest)

    def drain(self) -> None:
        """Park no more tasks: from now on each ends with its step, so that one can wait for those in `waiting`."""
        self._draining = True

    def cancel(self) -> None:
        for task in self.waiting:
            task.cancel()

    def close(self) -> None:
        """End the parked tasks. Waiting steps continue."""
        for worker in self._parked:
            worker.task.cancel()

    def _spawn(self, step: Step) -> None:
        # Use the pool's context: the caller's may hold variables of another request.
        task = self._loop.create_task(self._run_worker(step), context=self._context.copy())
        self.waiting.add(task)
        task.add_done_callback(self.waiting.discard)

    async def _run_worker(self, step: Step) -> None:
        task = asyncio.current_task(self._loop)
        assert task is not None
        rest = step()
        del step  # a parked task must not keep the connection of its first step alive
        while True:
            if rest is not None:
                await rest
                rest = None
            # A step that ignored a cancellation leaves the task marked, which would cancel later steps.
            if self._draining or task.cancelling() or len(self._parked) >= PARKED:
                return
            worker = _Worker(task, self._loop.create_future())
            self._parked.append(worker)
            self.waiting.discard(task)
            try:
                await worker.wake
            except asyncio.CancelledError:
                if worker.rest is None:
                    # The pool is closing, or a finished handler had leaked its task.
                    if worker in self._parked:
                        self._parked.remove(worker)
                    raise
                # A timeout of zero expired after the step began: it applies to the rest of the step.
                task.uncancel()
                task.cancel()
            rest = worker.rest


class _Worker:
    __slots__ = ("rest", "task", "wake")

    def __init__(self, task: asyncio.Task[None], wake: asyncio.Future[None]) -> None:
        self.task = task
        self.wake = wake
        self.rest: Rest | None = None

    def take_over(self, rest: Rest) -> None:
        """Wake the task to await the rest of a step that started in its name."""
        self.rest = rest
        if not self.wake.done():  # else it was cancelled by the step itself
            self.wake.set_result(None)
