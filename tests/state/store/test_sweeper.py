"""Expired rows are removed while a server runs, and a store that fails does not end that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.commands.cases import ListCases, OpenCase
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Store, Then
from bespeak.state.store.sweeper import Sweeper
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
