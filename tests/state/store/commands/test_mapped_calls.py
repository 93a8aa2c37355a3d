"""History of mappings, on every driver."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.semantics import CountMappedCalls, ListMappedCalls, MappedCalls
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio


async def count(store: Store, *calls: MappedCalls) -> None:
    assert not isinstance(await store.do(CountMappedCalls(calls)), Conflict)


async def test_calls_add_up_and_the_most_used_mapping_comes_first(store: Store) -> None:
    await count(store, MappedCalls("x:a", "y:a", 2, 1), MappedCalls("x:b", "y:b", 1, 0))
    await count(store, MappedCalls("x:b", "y:b", 5, 2), MappedCalls("y:a", "x:a", 0, 1))
    assert await store.read(ListMappedCalls()) == [
        MappedCalls("x:b", "y:b", 6, 2),
        MappedCalls("x:a", "y:a", 2, 1),
        MappedCalls("y:a", "x:a", 0, 1),
    ]
    assert len(await store.read(ListMappedCalls(1))) == 1


async def test_longest_names_fit(store: Store) -> None:
    await count(store, MappedCalls("x:" + "é" * 249, "y:" + "é" * 249, 1, 0))
    assert len(await store.read(ListMappedCalls())) == 1
