"""The latest events of an agent are kept, within a number and a size."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.state.store.commands.records import KIND, ListRecords, PutEvent, PutRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def put(store: Store, *sizes: int, owner: str = "ann", **limits: int) -> list[int]:
    """Log events, and return the sizes of those that are kept."""
    known = len(await store.read(ListRecords(KIND, limit=1000)))
    for number, size in enumerate(sizes, known):
        done: Any = await store.do(
            PutEvent(f"log-{owner}-{number:05}", owner, "x" * size, **{"most": 3, "most_size": 100, **limits})
        )
        assert (done[0].kind, done[0].owner, done[0].state) == (KIND, owner, "logged")
    found = await store.read(ListRecords(KIND, owner, limit=1000))
    return [len(record.data) for record in found]


async def test_the_oldest_events_of_an_agent_make_room(store: Store) -> None:
    assert await put(store, 1, 2, 3, 4, 5) == [3, 4, 5]
    assert await put(store, 9, owner="bob") == [9]
    assert await put(store) == [3, 4, 5]


async def test_the_size_of_all_events_is_bounded(store: Store) -> None:
    assert await put(store, 40, 40, 40) == [40, 40]
    assert await put(store, 90) == [90]
    assert sorted(await put(store, 5)) == [5, 90]


async def test_events_from_before_they_were_counted_count(store: Store) -> None:
    for number in range(5):
        await store.do(PutRecord(f"log-{number}", KIND, "ann", "logged", "xx"))
    assert await put(store, 7) == [2, 2, 7]
