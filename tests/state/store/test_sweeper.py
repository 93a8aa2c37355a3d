"""Expired rows are removed while a server runs, and a store that fails does not end that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.commands.cases import ListCases, OpenCase
from bespeak.state.store.commands.idempotency import RecordKey, UseNonce
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store, Then
from bespeak.state.store.sweeper import PurgeExpired, Sweeper
from bespeak.state.store.transfer import CountRows

pytestmark = pytest.mark.anyio


async def fill(store: Store, expired: int, kept: int) -> None:
    await asyncio.gather(*(store.do(UseNonce("old", str(number), -1)) for number in range(expired)))
    await asyncio.gather(*(store.do(UseNonce("new", str(number), 600)) for number in range(kept)))


async def test_sweep_removes_only_expired_rows(store: Store) -> None:
    await fill(store, 1200, 3)
    assert await Sweeper(store).sweep() == 1200
    assert await store.read(CountRows("nonces")) == 3
    assert await Sweeper(store).sweep() == 0


async def test_a_confirmation_is_kept_for_a_month_after_its_end(store: Store) -> None:
    for name, days in (("old", 31), ("new", 29)):
        await store.do(OpenCase(name, "confirmation", "a", "desk", name, "{}", lifetime=-days * 86400.0))
    assert await Sweeper(store).sweep() == 1
    assert [case.case_id for case in await store.read(ListCases())] == ["new"]


async def test_sweep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.state.store.sweeper._ROUNDS", 2)
    store = SqliteStore.in_memory()
    try:
        await fill(store, 1200, 0)
        assert await Sweeper(store).sweep() == 400
        assert await Sweeper(store).sweep() == 400
    finally:
        await store.close()


class Flaky(SqliteStore):
    """Fails once, then works."""

    failures = 1
    worked: asyncio.Event

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("no room")
        outcome = await super().do(*commands, then=then)
        self.worked.set()
        return outcome


async def test_sweeper_continues_after_a_failure_until_it_is_stopped() -> None:
    store = Flaky.in_memory()
    assert isinstance(store, Flaky)
    store.worked = asyncio.Event()
    sweeper = Sweeper(store, every=0.001)
    sweeper.start()
    sweeper.start()
    try:
        await asyncio.wait_for(store.worked.wait(), 10)
    finally:
        await sweeper.stop()
        await sweeper.stop()
        await store.close()


class Left(Command, frozen=True):
    """The keys and values that are still there."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT key FROM idempotency UNION ALL SELECT value FROM nonces")
        return sorted(row[0] for row in rows)


async def expiry_fill(store: Store) -> None:
    for name, retention in (("old", 0.0), ("older", -10.0), ("kept", 60.0)):
        await store.do(RecordKey("scope", f"key-{name}", b"", b"", retention))
        await store.do(UseNonce("kind", f"value-{name}", retention))


async def test_expired_rows_are_removed_and_counted(store: Store) -> None:
    await expiry_fill(store)
    assert await store.do(PurgeExpired()) == [4]
    assert await store.read(Left()) == ["key-kept", "value-kept"]
    assert await store.do(PurgeExpired()) == [0]


async def test_removal_is_limited_to_the_given_number(store: Store) -> None:
    await expiry_fill(store)
    assert await store.do(PurgeExpired(limit=1)) == [2]
    assert await store.do(PurgeExpired(limit=1)) == [2]
    assert await store.read(Left()) == ["key-kept", "value-kept"]


async def test_concurrent_removal_counts_each_row_once(first: Store, second: Store) -> None:
    await expiry_fill(first)
    removed = await asyncio.gather(*(store.do(PurgeExpired()) for store in (first, second) * 3))
    assert sum(done[0] for done in removed if not isinstance(done, Conflict)) == 4
