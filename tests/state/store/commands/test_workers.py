"""Processes that share a store are counted, and those of which nothing is heard are told apart."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.records import FindAnyRecord
from bespeak.state.store.commands.workers import CountWorkers, RenewWorker, Workers
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_processes_are_counted_by_server(store: Store) -> None:
    for worker, owner in (("worker-1", "a"), ("worker-2", "a"), ("worker-1", "a"), ("worker-3", "b")):
        await store.do(RenewWorker(worker, owner, 60.0))
    assert await store.read(CountWorkers("a", 30.0)) == Workers(2, 0)
    assert await store.read(CountWorkers("a", -1.0)) == Workers(0, 2)
    await store.do(RenewWorker("worker-2", "a", -1.0))
    assert await store.read(CountWorkers("a", 30.0)) == Workers(1, 0)
    assert (await store.read(FindAnyRecord("worker-1"))).kind == "worker"
