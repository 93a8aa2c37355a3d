"""The paused tasks in memory follow the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.runtime.server import Tasks
from bespeak.state.store.commands.cases import ESCALATION, TASK_TOPIC, DecideCase, OpenCase, PauseTask
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Command, Store

pytestmark = pytest.mark.anyio

A = "a" * 64


@pytest.fixture
async def store(anyio_backend: Any) -> AsyncIterator[Store]:
    opened = open_store("memory", role="sole")
    await opened.start()
    yield opened
    await opened.close()


async def pause(store: Store, task_id: str) -> None:
    case_id = f"esc-{task_id}"
    await store.do(OpenCase(case_id, ESCALATION, A, "desk", task_id, "{}", pause=PauseTask(case_id, task_id, (A,))))


async def test_tasks_are_loaded_at_start_and_after_a_change(store: Store) -> None:
    tasks = Tasks()
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
    tasks = Tasks()
    await tasks.follow(store)
    noticed = asyncio.Event()
    store.watch(TASK_TOPIC, noticed.set)  # after the follower, which has started to read by then
    await pause(store, "t")
    await asyncio.wait_for(noticed.wait(), 10)
    await tasks.refresh()  # waits for the reading in progress
    assert tasks.get(A, "t") is not None
    await tasks.close()


async def test_more_tasks_than_fit_leave_the_answer_to_the_store(store: Store) -> None:
    tasks = Tasks(most=2)
    for task_id, complete in (("t", True), ("u", True), ("v", False)):
        await pause(store, task_id)
        await tasks.follow(store)
        assert (tasks.watched, tasks.complete) == (True, complete)
    await tasks.close()


async def test_a_store_that_cannot_be_read_leaves_the_answer_to_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = Tasks()
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
