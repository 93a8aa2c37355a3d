"""Queues are measured by what waits in them and since when."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.messages import PutOutbox
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.commands.workers import MeasureQueues, Queues
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


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
