"""Processes that share a store are counted, and those of which nothing is heard are told apart."""

from __future__ import annotations

import pytest

from bespeak.extensions.messages.store import PutOutbox
from bespeak.state.store.commands.records import FindAnyRecord, PutRecord
from bespeak.state.store.commands.workers import CountWorkers, MeasureQueues, Queues, RenewWorker, WorkerCount
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_processes_are_counted_by_server(store: Store) -> None:
    for worker, owner in (("worker-1", "a"), ("worker-2", "a"), ("worker-1", "a"), ("worker-3", "b")):
        await store.do(RenewWorker(worker, owner, 60.0))
    assert await store.read(CountWorkers("a", 30.0)) == WorkerCount(2, 0)
    assert await store.read(CountWorkers("a", -1.0)) == WorkerCount(0, 2)
    await store.do(RenewWorker("worker-2", "a", -1.0))
    assert await store.read(CountWorkers("a", 30.0)) == WorkerCount(1, 0)
    assert (await store.read(FindAnyRecord("worker-1"))).kind == "worker"


async def test_nothing_waits_in_an_empty_store(store: Store) -> None:
    assert await store.read(MeasureQueues("delivery")) == Queues(0, 0.0, 0.0, 0)


async def test_what_waits_is_counted_and_what_is_late_is_told(store: Store) -> None:
    await store.do(
        PutOutbox("delivery", "x", "{}"),
        PutOutbox("other", "x", "{}", -5000.0),
        PutOutbox("delivery", "x", "{}", -50.0),
        PutRecord("item-1", "submission", "ann", "queued", "{}"),
        PutRecord("item-2", "submission", "ann", "cancelled", "{}"),
        PutRecord("alert-1", "alert", "ann", "open", "{}", due=1.0),
    )
    found = await store.read(MeasureQueues("delivery"))
    assert (found.postings, found.submissions) == (2, 1)
    assert 50 <= found.posting_lag < 5000
    assert found.due_lag > 1e9
