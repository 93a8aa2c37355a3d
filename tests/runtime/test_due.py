"""What is due is carried out on time, by whoever knows its kind, and again if that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bespeak.runtime.background import DueLoop
from bespeak.state.store.commands.records import ChangeRecord, PutRecord, Record
from bespeak.state.store.opening import open_store

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
