"""Tasks in the store: followed and canceled from every process, and never at work for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from a2a.types import Task, TaskState
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from tests.faces.a2a.agent import calling, state, words
from tests.service import echo, make_endpoint

from bespeak.errors import StoreUnavailableError
from bespeak.faces.a2a import tasks as module
from bespeak.faces.a2a.skills import Skills
from bespeak.faces.a2a.tasks import Held, SkillTasks, TaskChange, new_task, tell
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.a2a_tasks import FINISHED, WORKING, ReadTask
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Store

pytestmark = pytest.mark.anyio
A, B = "a" * 64, "b" * 64
SKILL = Skills([make_endpoint("FIND", "/rooms", echo)])["find_rooms"]
SENT = calling("find_rooms")


@asynccontextmanager
async def process(place: str = "memory", *, most: int = 10) -> AsyncIterator[SkillTasks]:
    """Start the tasks of one process with a store of its own, or a shared one."""
    store = open_store(place, role="sole" if place == "memory" else "shared")
    await store.start()
    tasks = SkillTasks(store, retention=600, most=most)
    await tasks.start()
    try:
        yield tasks
    finally:
        await tasks.stop()
        await store.close()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "_LOOK", 0.05)  # a change before the first poll is not noticed
    return str(tmp_path / "store.db")


def change(state_: Any = TaskState.TASK_STATE_WORKING, task: Task | None = None, text: str = "") -> TaskChange:
    changed = Task()
    changed.CopyFrom(task or new_task(SENT, SKILL))
    tell(changed, state_, text)
    return TaskChange(changed, "{}")


async def opened(tasks: SkillTasks, state_: Any = TaskState.TASK_STATE_WORKING, message: Any = None) -> Held:
    held = await tasks.open(A, message or calling("find_rooms"), change(state_))
    assert isinstance(held, Held)
    return held


def finishing(held: Held, after: asyncio.Event | None = None) -> Any:
    """Make the work of a task that completes, after an event if there is one."""

    async def work() -> TaskChange:
        if after is not None:
            await after.wait()
        return change(TaskState.TASK_STATE_COMPLETED, held.task)

    return work


async def test_work_that_raises_fails_its_task_without_its_words_and_its_task_is_private() -> None:
    async with process() as tasks:
        held = await opened(tasks)
        tasks.run(held, finishing(held))
        assert state((await tasks.settle(held)).task) == "completed"
        again = await tasks.read(A, held.stored.task_id)
    assert (again.stage, again.stored.call) == (FINISHED, None)
    async with process() as tasks:
        held = await opened(tasks)
        tasks.run(held, finishing(held, asyncio.Event()))
        assert await tasks.read(B, held.stored.task_id) is None
        assert await tasks.read(A, "a\0b") is None

    async def work() -> TaskChange:
        raise RuntimeError("secret")

    async with process() as tasks:
        held = await opened(tasks)
        tasks.run(held, work)
        task = (await tasks.settle(held)).task
    assert state(task) == "failed"
    assert "secret" not in str(task)


async def test_a_known_message_returns_its_task_and_of_two_changes_one_counts() -> None:
    async with process() as tasks:
        first = await opened(tasks, message=SENT)
        second = await opened(tasks, message=SENT)
        found = await tasks.find(A, SENT)
        assert await tasks.find(B, SENT) is None
        assert found is not None
        assert {held.stored.task_id for held in (first, second, found)} == {first.stored.task_id}
        held = await opened(tasks, TaskState.TASK_STATE_AUTH_REQUIRED)
        first = await tasks.change(held, change(TaskState.TASK_STATE_WORKING, held.task), calling("find_rooms"))
        assert first is not None
        assert await tasks.change(held, change(TaskState.TASK_STATE_WORKING, held.task)) is None


async def test_the_task_of_a_known_message_may_be_gone_and_unfinished_ones_are_bounded() -> None:
    async with process(most=1) as tasks:
        await opened(tasks, TaskState.TASK_STATE_COMPLETED, SENT)
        await opened(tasks, TaskState.TASK_STATE_COMPLETED)
        with pytest.raises(TaskNotFoundError, match="new messageId"):
            await tasks.find(A, SENT)
        await opened(tasks, TaskState.TASK_STATE_AUTH_REQUIRED)
        refused = await tasks.open(A, calling("find_rooms"), change())
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (429, "too-many-tasks")


async def test_an_end_that_cannot_be_stored_is_told_to_the_caller_that_waits() -> None:
    async with process() as tasks:
        held = await opened(tasks)
        real = tasks._store

        class Lost:
            sole = True

            async def do(self, *_: Command) -> Any:
                raise StoreUnavailableError("gone")

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        go = asyncio.Event()
        tasks.run(held, finishing(held, go))
        waiting = asyncio.create_task(tasks.settle(held))
        await asyncio.sleep(0)  # it waits now
        tasks._store = Lost()  # type: ignore[assignment]
        go.set()
        assert state((await waiting).task) == "completed"
        tasks._store = real


async def test_a_task_is_canceled_while_it_waits_or_works_and_followed_to_its_stage() -> None:
    async with process() as tasks:
        waiting = await opened(tasks, TaskState.TASK_STATE_AUTH_REQUIRED)
        working = await opened(tasks)
        tasks.run(working, finishing(working, asyncio.Event()))
        ends = [(await tasks.cancel(held)).task for held in (waiting, working)]
        with pytest.raises(TaskNotCancelableError, match="CANCELED"):
            await tasks.cancel(await tasks.reread(working))
        held = await opened(tasks)
        tasks.run(held, finishing(held))
        seen = [event async for event in tasks.follow(held, stages=frozenset({WORKING}))]
        finished = await tasks.reread(held)
        again = [event async for event in tasks.follow(finished, stages=frozenset({WORKING}))]
    assert [state(task) for task in ends] == ["canceled", "canceled"]
    assert words(ends[1]).startswith("Canceled. What the call had done")
    assert [state(event) for event in seen] == ["working", "completed"]
    assert again == [finished.task]


async def test_running_calls_are_bounded_and_canceled_ones_leave_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNNING", 1)
    async with process() as tasks:
        for _ in range(2):
            held = await opened(tasks, message=calling("find_rooms", {"message_id": uuid4().hex}))
            tasks.run(held, finishing(held, asyncio.Event()))
            assert state((await tasks.cancel(held)).task) == "canceled"
        assert not tasks._running
        held = await opened(tasks)
        tasks.run(held, finishing(held, asyncio.Event()))
        refused = await tasks.open(A, calling("find_rooms"), change())
    assert isinstance(refused, Refused)
    assert refused.code == "too-many-running"


async def test_a_call_that_cannot_be_stopped_is_not_called_canceled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    go = asyncio.Event()

    async def stubborn() -> TaskChange:
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()
        return change(TaskState.TASK_STATE_COMPLETED, held.task)

    async with process() as tasks:
        held = await opened(tasks)
        tasks.run(held, stubborn)
        await asyncio.sleep(0)
        assert state((await tasks.cancel(held)).task) == "working"
        go.set()
        assert state((await tasks.settle(held)).task) == "completed"


async def test_progress_is_shown_and_not_stored() -> None:
    async with process() as tasks:
        held = await opened(tasks)
        go = asyncio.Event()
        tasks.run(held, finishing(held, go))
        seen: list[Any] = []

        async def follow() -> None:
            async for event in tasks.follow(held, stages=frozenset({WORKING})):
                text = words(event) if event.status.HasField("message") else ""
                seen.append((state(event), text))

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)  # it waits now
        tasks.report(held.stored.task_id, change(task=held.task, text="half").task)
        tasks.report("unknown", held.task)
        shown = await tasks.read(A, held.stored.task_id)
        stored = await tasks._store.read(ReadTask(held.stored.task_id, A))
        go.set()
        await asyncio.wait_for(following, 20)
    assert seen == [("working", ""), ("working", "half"), ("completed", "")]
    assert (words(shown.task), stored.revision) == ("half", 1)


# Several processes.


async def test_a_task_is_followed_and_canceled_from_another_process(shared: str) -> None:
    async with process(shared) as here, process(shared) as there:
        held = await opened(here)
        go = asyncio.Event()
        here.run(held, finishing(held, go))
        seen = await there.read(A, held.stored.task_id)
        assert seen.stage == WORKING
        waiting = asyncio.create_task(there.settle(seen))
        go.set()
        assert state((await asyncio.wait_for(waiting, 20)).task) == "completed"
    async with process(shared) as here, process(shared) as there:
        held = await opened(here)
        here.run(held, finishing(held, asyncio.Event()))
        seen = await there.read(A, held.stored.task_id)
        assert seen is not None
        assert state((await there.cancel(seen)).task) == "canceled"


async def test_the_task_of_a_process_that_is_gone_has_failed(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with process(shared) as there:
        monkeypatch.setattr(module, "LEASE", -1.0)
        held = await opened(there)
        monkeypatch.undo()
        seen = await there.read(A, held.stored.task_id)
        _, listed = await there.list(A, 5)
    assert (state(seen.task), [state(each.task) for each in listed]) == ("failed", ["failed"])
    assert "not known" in words(seen.task)


async def test_work_keeps_its_lease(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE", 0.3)
    async with process(shared) as here, process(shared) as there:
        held = await opened(here)
        go = asyncio.Event()
        here.run(held, finishing(held, go))
        renewed = asyncio.Event()
        monkeypatch.setattr(here, "_store", _Noticing(here._store, renewed))
        for _ in range(3):
            renewed.clear()
            await asyncio.wait_for(renewed.wait(), 20)
        seen = await there.read(A, held.stored.task_id)
        go.set()
        await here.settle(held)
    assert seen.stage == WORKING


class _Noticing:
    """A store that tells when leases are prolonged."""

    def __init__(self, store: Store, renewed: asyncio.Event) -> None:
        self._store = store
        self._renewed = renewed

    async def do(self, *commands: Command) -> Any:
        done = await self._store.do(*commands)
        if type(commands[0]).__name__ == "RenewTasks":
            self._renewed.set()
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
