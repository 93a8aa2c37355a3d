"""Tasks of A2A, on every driver: one for each message, of one owner, and worked on by one process."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.state.store.single import only

from bespeak.state.store.commands.a2a_tasks import (
    CANCELS,
    FINISHED,
    WAITING,
    WORKING,
    A2aTask,
    AbandonTasks,
    ListTasks,
    OpenTask,
    ReadTask,
    RenewTasks,
    RequestCancel,
    SaveTask,
)
from bespeak.state.store.commands.idempotency import FindKey, Recorded, RecordKey
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

A, B = "a" * 64, "b" * 64


def task(task_id: str = "t", state: str = WORKING, updated: float = 1.0, **fields: Any) -> A2aTask:
    values: dict[str, Any] = {"context_id": "c", "status": 2, "call": "{}", "document": b"\0x", "revision": 1}
    return A2aTask(task_id=task_id, state=state, updated=updated, **(values | fields))


def opening(new: A2aTask, owner: str = A, *, message: str | None = None, most: int = 10, lease: float = 60) -> OpenTask:
    key = RecordKey(f"a2a {owner}", message or f"m {new.task_id}", b"hash", new.task_id.encode(), 600)
    return OpenTask(key, new, owner, lease, 600, most)


class Age(Command, frozen=True):
    """Let the retention of all tasks pass."""

    def steps(self) -> Steps:
        yield Statement("UPDATE a2a_tasks SET expires = {now} - 1")


async def test_a_task_is_read_by_its_owner_alone(store: Store) -> None:
    assert await only(store, opening(task())) == 1
    assert await store.read(ReadTask("t", A)) == task()
    assert await store.read(ReadTask("t", B)) is None
    assert await store.read(ReadTask("other", A)) is None


async def test_a_message_opens_one_task(store: Store) -> None:
    await store.do(opening(task("t1"), message="m"))
    again = await only(store, opening(task("t2"), message="m"))
    assert again == Conflict("known")
    assert await store.read(ReadTask("t2", A)) is None
    assert await store.read(FindKey(f"a2a {A}", "m")) == Recorded(b"hash", b"t1")
    assert await only(store, opening(task("t3"), B, message="m")) == 1


async def test_a_change_is_based_on_the_last_one(store: Store) -> None:
    await store.do(opening(task()))
    done = task(state=FINISHED, status=3, document=b"done", updated=2.0)
    assert await only(store, SaveTask(done, 0, 600)) == 2
    assert await only(store, SaveTask(task(state=WAITING), 0, 600)) == Conflict("changed")
    found = await store.read(ReadTask("t", A))
    assert found == msgspec.structs.replace(done, revision=2)


async def test_work_whose_process_is_gone_has_lapsed(store: Store) -> None:
    await store.do(opening(task("gone"), lease=-1))
    await store.do(opening(task("here")))
    await store.do(opening(task("waits", WAITING), lease=-1))
    found = {name: (await store.read(ReadTask(name, A))).lapsed for name in ("gone", "here", "waits")}
    assert found == {"gone": True, "here": False, "waits": False}
    await store.do(RenewTasks(("gone",), 60, 600))
    assert not (await store.read(ReadTask("gone", A))).lapsed
    await store.do(AbandonTasks())
    assert (await store.read(ReadTask("gone", A))).lapsed
    assert not (await store.read(ReadTask("waits", A))).lapsed


async def test_a_cancellation_is_heard_by_the_process_that_works(store: Store) -> None:
    heard: list[str] = []
    store.watch(CANCELS, lambda: heard.append(CANCELS))
    await store.do(opening(task("t1")), opening(task("t2")), opening(task("t3", FINISHED)))
    await store.do(RequestCancel("t1"))
    await store.do(RequestCancel("t3"))
    assert await only(store, RenewTasks(("t1", "t2", "t3"), 60, 600)) == ["t1"]
    assert heard


async def test_an_owner_loses_the_task_that_was_finished_first(store: Store) -> None:
    await store.do(opening(task("new", FINISHED, 3.0)), opening(task("old", FINISHED, 2.0)), opening(task("open")))
    assert await only(store, opening(task("more"), most=3)) == 1
    assert await store.read(ReadTask("old", A)) is None
    assert await only(store, opening(task("more2"), most=3)) == 1
    assert await only(store, opening(task("more3"), most=3)) == Conflict("too-many", {"most": 3})
    assert await only(store, opening(task("other"), B, most=3)) == 1


async def test_tasks_are_listed_from_the_last_changed(store: Store) -> None:
    for number in range(5):
        await store.do(opening(task(f"t{number}", status=3 if number == 2 else 2, updated=float(number // 2))))
    await store.do(opening(task("elsewhere", context_id="d")), opening(task("foreign"), B))
    total, first = await store.read(ListTasks(A, 2, context_id="c"))
    assert (total, [each.task_id for each in first]) == (5, ["t4", "t3"])
    _, rest = await store.read(ListTasks(A, 9, context_id="c", after=(first[-1].updated, first[-1].task_id)))
    assert [each.task_id for each in rest] == ["t2", "t1", "t0"]
    assert (await store.read(ListTasks(A, 9, status=3)))[0] == 1
    assert (await store.read(ListTasks(A, 9, since=2.0)))[0] == 1
    assert (await store.read(ListTasks(A, 9)))[0] == 6


async def test_a_task_is_forgotten_after_its_retention(store: Store) -> None:
    await store.do(opening(task()))
    await store.do(Age())
    assert await store.read(ReadTask("t", A)) is None
    assert (await store.read(ListTasks(A, 9)))[0] == 0
    await store.do(PurgeExpired())
    assert await only(store, SaveTask(task(), 0, 600)) == Conflict("changed")
