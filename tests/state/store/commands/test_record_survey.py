"""Operators see records of every kind, and end the life of any of them."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.state.store.commands.records import (
    CountRecords,
    ExpireRecord,
    FindAnyRecord,
    FindRecord,
    KindCount,
    PutRecord,
)
from bespeak.state.store.commands.steps import JournalSteps, ReadSteps, StepRow
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio


async def put(store: Store, name: str, kind: str, state: str = "open", **fields: Any) -> None:
    await store.do(PutRecord(name, kind, "ann", state, "{}", **fields))


async def test_records_are_counted_by_kind_and_state(store: Store) -> None:
    for name, kind, state in (("a", "alert", "open"), ("b", "alert", "open"), ("c", "alert", "shut"), ("d", "x", "y")):
        await put(store, name, kind, state)
    await put(store, "e", "alert", lifetime=-1.0)
    expected = [KindCount("alert", "open", 2), KindCount("alert", "shut", 1), KindCount("x", "y", 1)]
    assert await store.read(CountRecords()) == expected


async def test_an_expired_record_is_neither_found_nor_due_and_is_purged_with_its_steps(store: Store) -> None:
    await put(store, "chain-1", "workflow", "running", delay=0.0)
    await store.do(JournalSteps("chain-1", 0, (StepRow(1, 1, "done", 200, "{}"),), 0.0))
    assert await store.do(ExpireRecord("chain-1"), ExpireRecord("other")) == ["workflow", None]
    assert await store.read(FindRecord(("workflow",), "chain-1")) is None
    kept = await store.read(FindAnyRecord("chain-1"))
    assert (kept.kind, kept.due) == ("workflow", None)
    assert isinstance(await store.do(JournalSteps("chain-1", 0, (), 1.0)), Conflict)
    await store.do(PurgeExpired())
    assert (await store.read(FindAnyRecord("chain-1")), await store.read(ReadSteps("chain-1"))) == (None, [])
