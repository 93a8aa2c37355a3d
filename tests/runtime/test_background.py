"""What is due is carried out on time, by whoever knows its kind, and again if that fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.runtime import background
from bespeak.runtime.background import DueLoop, Follower
from bespeak.state.store.commands.endpoints import TOPIC, PutEndpoint, ReadRevision
from bespeak.state.store.commands.records import ChangeRecord, PutRecord, Record
from bespeak.state.store.opening import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_records_are_handed_over_when_they_are_due_even_if_added_later() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def carry(records: Sequence[Record]) -> None:
        for record in records:
            await store.do(ChangeRecord(record.record_id, (record.kind,), ("open",), "done", fence=record.fence))
            seen.put_nowait(record.record_id)

    loop = DueLoop(store, {"alert": carry})
    loop.start()
    try:
        await store.do(PutRecord("soon", "alert", "ann", "open", "{}", delay=0.05))
        await store.do(PutRecord("now", "alert", "ann", "open", "{}", delay=0.0))
        await store.do(PutRecord("foreign", "grant", "ann", "open", "{}", delay=0.0))
        async with asyncio.timeout(10):
            assert [await seen.get(), await seen.get()] == ["now", "soon"]
    finally:
        await loop.stop()
        await store.close()


async def test_a_kind_that_fails_does_not_hold_up_others_and_is_due_again() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    done: list[str] = []

    async def fail(_: Sequence[Record]) -> None:
        raise ValueError("no")

    async def carry(records: Sequence[Record]) -> None:
        done.extend(record.record_id for record in records)

    try:
        loop = DueLoop(store, {"bad": fail, "good": carry}, lease=-1.0)
        await store.do(PutRecord("b", "bad", "ann", "open", "{}", delay=-2.0))
        await store.do(PutRecord("g", "good", "ann", "open", "{}", delay=-1.0))
        assert await loop.turn() == 2
        assert await loop.turn() == 2
        assert done == ["g", "g"]
    finally:
        await store.close()


async def test_a_kind_that_takes_long_does_not_hold_up_others() -> None:
    store = open_store("memory", role="sole")
    await store.start()
    begun, carried = asyncio.Event(), asyncio.Event()

    async def wait(_: Sequence[Record]) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def carry(_: Sequence[Record]) -> None:
        carried.set()

    loop = DueLoop(store, {"slow": wait, "quick": carry})
    loop.start()
    try:
        async with asyncio.timeout(10):
            await store.do(PutRecord("s", "slow", "ann", "open", "{}", delay=0.0))
            await begun.wait()
            await store.do(PutRecord("q", "quick", "ann", "open", "{}", delay=0.0))
            await carried.wait()
    finally:
        await loop.stop()
        await store.close()


async def test_more_than_one_group_that_is_due_at_once_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.background._AT_ONCE", 4)
    store = open_store("memory", role="sole")
    await store.start()
    groups: list[int] = []
    done = asyncio.Event()

    async def carry(records: Sequence[Record]) -> None:
        groups.append(len(records))
        if sum(groups) == 10:
            done.set()

    for number in range(10):
        await store.do(PutRecord(f"r{number}", "alert", "ann", "open", "{}", delay=0.0))
    loop = DueLoop(store, {"alert": carry})
    loop.start()
    try:
        async with asyncio.timeout(10):
            await done.wait()
        assert groups == [4, 4, 2]
    finally:
        await loop.stop()
        await store.close()


@pytest.fixture
async def store(anyio_backend: Any) -> AsyncIterator[Store]:
    opened = SqliteStore.in_memory()
    await opened.start()
    yield opened
    await opened.close()


class Held:
    """A revision, read again after changes; the first readings may fail."""

    def __init__(self, failures: int = 0) -> None:
        self.revision = -1
        self.changed = asyncio.Event()
        self._failures = failures

    async def take_in(self, store: Store) -> None:
        self.revision = await store.read(ReadRevision())
        if self.revision and self._failures:
            self._failures -= 1
            raise StoreUnavailableError("away")
        if self.revision:
            self.changed.set()


async def test_the_store_is_read_at_once_and_after_every_change(store: Store) -> None:
    held = Held()
    following = Follower(TOPIC, held.take_in)
    await following.refresh()
    assert held.revision == -1
    await following.follow(store)
    assert held.revision == 0
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert held.revision == 1
    await following.close()


async def test_a_store_that_could_not_be_read_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    caplog.set_level(logging.INFO)  # the store itself reports that it is away
    held = Held(failures=2)
    following = Follower(TOPIC, held.take_in)
    await following.follow(store)
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert caplog.text.count("could not read the endpoints in the store") == 2
    await following.close()


async def test_copy_that_cannot_be_read_is_stale_until_it_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    store.sole = False
    away = asyncio.Event()
    flips: asyncio.Queue[bool] = asyncio.Queue()

    async def take_in(_: Store) -> None:
        if away.is_set():
            raise StoreUnavailableError("away")

    following = Follower(TOPIC, take_in, stale_after=0.05, flip=flips.put_nowait)
    await following.follow(store)
    away.set()  # and no change is announced: it is read all the same
    assert await asyncio.wait_for(flips.get(), 10) is True
    away.clear()
    assert await asyncio.wait_for(flips.get(), 10) is False
    await following.close()
    assert flips.empty()


async def test_copy_of_a_store_without_other_processes_is_never_stale(store: Store) -> None:
    flips: list[bool] = []
    following = Follower(TOPIC, Held().take_in, stale_after=1e-9, flip=flips.append)
    await following.follow(store)
    for _ in range(10):
        await asyncio.sleep(0)
    await following.close()
    assert flips == []
