"""Expired rows go, the others stay, on every driver."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.state.store.commands.idempotency import RecordKey, UseNonce
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio


class Left(Command, frozen=True):
    """The keys and values that are still there."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT key FROM idempotency UNION ALL SELECT value FROM nonces")
        return sorted(row[0] for row in rows)


async def fill(store: Store) -> None:
    for name, retention in (("old", 0.0), ("older", -10.0), ("kept", 60.0)):
        await store.do(RecordKey("scope", f"key-{name}", b"", b"", retention))
        await store.do(UseNonce("kind", f"value-{name}", retention))


async def test_expired_rows_are_removed_and_counted(store: Store) -> None:
    await fill(store)
    assert await store.do(PurgeExpired()) == [4]
    assert await store.read(Left()) == ["key-kept", "value-kept"]
    assert await store.do(PurgeExpired()) == [0]


async def test_removal_is_limited_to_the_given_number(store: Store) -> None:
    await fill(store)
    assert await store.do(PurgeExpired(limit=1)) == [2]
    assert await store.do(PurgeExpired(limit=1)) == [2]
    assert await store.read(Left()) == ["key-kept", "value-kept"]


async def test_concurrent_removal_counts_each_row_once(first: Store, second: Store) -> None:
    await fill(first)
    removed = await asyncio.gather(*(store.do(PurgeExpired()) for store in (first, second) * 3))
    assert sum(done[0] for done in removed if not isinstance(done, Conflict)) == 4
